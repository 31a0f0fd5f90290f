package main

import (
	"os"
	"testing"
)

// A program that is executed closes what it was not to inherit, and holds a
// lock meanwhile that most looks at its process wait for. Who looks at the
// process in order to answer the close waits for ever, and with it everybody
// who lists processes.
func TestExecutingAProgramClosesADocument(t *testing.T) {
	w := newWorld(t, "").session()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.want(exe+` intrude exec "$S/start"; cat "$J/job-1/wait" "$J/job-1/result"; ls "$J"`, "completed\nexecuted\njob-1\n")
}
