package main

import (
	"os"
	"path/filepath"

	"scvfs/workbench/config"
)

// settings returns the configuration that the flags and the environment give,
// and where things lie.
func settings(flags serveFlags) (*config.Config, config.Layout, error) {
	layout, err := config.NewLayout(os.Getenv)
	if err != nil && (flags.state == "" || flags.config == "") {
		return nil, layout, err
	}
	if flags.state != "" {
		if layout.State, err = filepath.Abs(flags.state); err != nil {
			return nil, layout, err
		}
	}
	if flags.config != "" {
		layout.Config = flags.config
	}
	conf, err := config.Load(layout.Config, flags.config != "")
	if err != nil {
		return nil, layout, err
	}
	if flags.mount != "" {
		conf.SetMount(flags.mount, "--mount")
		return conf, layout, nil
	}
	conf.Mount, err = config.Expand(conf.Mount, os.Getenv("HOME"))
	return conf, layout, err
}

// existing returns the nearest directory at or above path that is there.
func existing(path string) string {
	for path != "/" && path != "." {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		path = filepath.Dir(path)
	}
	return path
}
