// Package workbench holds the rules of sessions, jobs and runs.
package workbench

// Workbench is the daemon's workbench.
type Workbench struct{}
