package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"scvfs/takeover/attach"
)

// attachTo draws a takeover on the user's terminal, by its files.
func attachTo(args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("scvfs attach", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() {
		fmt.Fprint(stderr, attachUsage)
		set.PrintDefaults()
	}
	key := set.String("detach-key", attach.DefaultDetachKey, `leave with these keys, such as "ctrl-b d" or ctrl-]; none for none`)
	interrupt := set.Bool("interrupt", false, "stop the job that runs the conversation's turn, and take it over")
	readOnly := set.Bool("read-only", false, "watch; take the terminal from nobody")
	path, err := onePath(set, args)
	if err != nil {
		return err
	}
	keys, err := attach.ParseKeys(*key)
	switch {
	case err != nil:
		return usageError(err.Error())
	case *interrupt && *readOnly:
		return usageError("--interrupt takes the terminal, --read-only does not: choose one")
	}
	terminal, err := attach.OpenTerminal(os.Stdin, os.Stdout, os.Getenv("TERM"))
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	defer terminal.Close()
	wanted := attach.Attach
	switch {
	case *interrupt:
		wanted = attach.Interrupt
	case *readOnly:
		wanted = attach.Join
	}
	cols, rows := terminal.Size()
	dir, err := attach.Locate(path, wanted, cols, rows)
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	name, err := filepath.Abs(path)
	if err != nil {
		name = path
	}
	said, err := attach.Run(attach.Options{
		Files: attach.Dir(dir), Terminal: terminal, Name: name, Detach: keys, ReadOnly: *readOnly,
	})
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	fmt.Fprintln(stdout, "attach:", said)
	return nil
}

const attachUsage = `usage: scvfs attach [FLAGS] PATH

PATH is a conversation, which is taken over if it is not, or a takeover:
  scvfs attach ~/scv/sessions/shop/conversations/codex-1
Exits with 0 when detached or ended, 3 when somebody else took the terminal.

`

// onePath parses flags that stand before or behind the one argument.
func onePath(set *flag.FlagSet, args []string) (string, error) {
	var paths []string
	for {
		if err := set.Parse(args); err != nil {
			return "", flagError(err)
		}
		if set.NArg() == 0 {
			break
		}
		paths, args = append(paths, set.Arg(0)), set.Args()[1:]
	}
	if len(paths) != 1 || paths[0] == "" {
		return "", usageError("attach takes one conversation or takeover: scvfs attach ~/scv/sessions/shop/conversations/codex-1")
	}
	return paths[0], nil
}
