package fs_test

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"

	"scvfs/fs"
	"scvfs/fs/ninep"
	"scvfs/fs/ninep/client"
)

// What a transcript may show otherwise over 9P, as over a kernel's mount: a
// refusal is an errno, whose kind is the same and whose sentence is in the file
// and in errors; and a name that is not there is not asked to be removed, so
// errors has nothing of it. The clock of these tests goes on with each look.
var (
	sentence = regexp.MustCompile(`(?m)^(! [^:]*): .*$`)
	unasked  = regexp.MustCompile(`(?m)^\S+Z \d+ (/sessions/shop/jobs/job-1 there is no job|/sessions/nobody /sessions has no) .*\n`)
	clock    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\S+Z|\b\d+m\d+s\b|\b\d+ min\b`)
)

func alike(text string) string {
	text = sentence.ReplaceAllString(text, "$1")
	return clock.ReplaceAllString(unasked.ReplaceAllString(text, ""), "TIME")
}

func TestTranscriptsOver9P(t *testing.T) {
	fs.PlayTranscripts(t, over9P, func(got, want string) bool { return alike(got) == alike(want) })
}

// over9P serves a tree on a socket and returns what our client makes of it.
func over9P(t testing.TB, root fs.Dir) fs.Dir {
	t.Helper()
	server, err := ninep.New(root, ninep.Options{Relay: func(int) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ninep.ListenUnix(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), l) }()
	c, err := client.Dial(context.Background(), l.Addr().String(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		server.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c.Root()
}
