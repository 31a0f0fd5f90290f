package workbench

import (
	"context"
	"testing"

	"scvfs/ledger/fault"
)

func TestChangesComeInOrderAndFromNowOn(t *testing.T) {
	s := newChanges()
	s.publish(Change{Job: "before"})
	sub := s.subscribe()
	for _, name := range []string{"a", "b"} {
		s.publish(Change{Job: name})
	}
	got, err := sub.Next(context.Background())
	if err != nil || len(got) != 2 || got[0].Job != "a" || got[1].Job != "b" || got[1].Seq != got[0].Seq+1 {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestSlowReaderIsToldWhatItMissed(t *testing.T) {
	s := newChanges()
	sub := s.subscribe()
	const missed = 10
	for range changeRing + missed {
		s.publish(Change{})
	}
	got, err := sub.Next(context.Background())
	if err != nil || len(got) != changeRing+1 || got[0].Kind != ChangesLost || got[0].Lost != missed {
		t.Fatalf("got %d changes, first %+v, %v", len(got), got[0], err)
	}
	if got[1].Seq != missed+1 || got[0].Seq != missed {
		t.Fatalf("numbers go %d, %d", got[0].Seq, got[1].Seq)
	}
}

func TestWaitForChangesCanBeInterrupted(t *testing.T) {
	sub := newChanges().subscribe()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sub.Next(ctx); !fault.Is(err, fault.Interrupted) {
		t.Fatal(err)
	}
}
