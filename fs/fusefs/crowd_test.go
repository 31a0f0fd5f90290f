package fusefs

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Directories come and go under clients that look at them, while the kernel is
// told to forget them: go-fuse's books and the kernel's must agree all along,
// and nothing may be logged.
func TestComingAndGoingUnderManyClients(t *testing.T) {
	out := &lines{}
	shop := workshop{newFolder()}
	shop.add("stays", newText("still here\n"))
	s := mountTree(t, newFolder().add("shop", shop), Options{Log: slog.New(slog.NewTextHandler(out, nil))})
	scripts := []string{
		`for i in $(seq 40); do mkdir $M/shop/a; rmdir $M/shop/a; done`,
		`for i in $(seq 40); do mkdir $M/shop/b && (cd $M/shop/b && rmdir ../b && pwd >/dev/null); done`,
		`for i in $(seq 25); do find $M -ls >/dev/null 2>&1; done; true`,
		`for i in $(seq 25); do stat $M/shop/a $M/shop/b >/dev/null 2>&1; ls -l $M/shop >/dev/null 2>&1; done; true`,
		`for i in $(seq 25); do cat $M/shop/stays; done | sort -u`,
	}
	results := make([]outcome, len(scripts))
	var clients, notices sync.WaitGroup
	for i, script := range scripts {
		clients.Go(func() { results[i] = sh(t, s, script) })
	}
	over := make(chan struct{})
	notices.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			for _, name := range []string{"a", "b", "stays"} {
				s.Forget(shop.ino, name)
			}
			s.Changed(shop.ino)
		}
	})
	clients.Wait()
	close(over)
	notices.Wait()
	for i, want := range []string{"", "", "", "", "still here\n"} {
		results[i].want(t, want)
	}
	sh(t, s, `ls -l $M/shop | wc -l; cat $M/shop/stays`).want(t, "2\nstill here\n")
	if log := out.String(); strings.TrimSpace(log) != "" {
		t.Errorf("logged:\n%.2000s", log)
	}
}
