package workbench

import (
	"cmp"
	"time"

	"scvfs/ledger"
	"scvfs/workbench/agent"
)

// commitEnd commits the end of the job, its run and its conversation's turn,
// and publishes them, the slot and the lane being free before. What waited in
// the lane of a turn that was cut off is cut off with it: it was meant for what
// that turn would have left.
func (t *turn) commitEnd(end ending) error {
	s := t.j.s
	s.tr.Lock()
	defer s.tr.Unlock()
	rec := t.j.next(end.state, end.detail)
	rec.Exit, rec.ResultBytes = end.exit, end.bytes
	if rec.Cancel == nil {
		rec.Cancel = t.unsaved
	}
	runRec := t.runRecord(end.state, end.detail)
	runRec.Updated, runRec.Ended = rec.Updated, rec.Updated
	if end.lives {
		runRec.State, runRec.Detail, runRec.Ended = ledger.Idle, "", time.Time{}
	}
	before := rec.Usage
	convRec := t.conversationEnd(end, runRec, rec)
	if rec.Review != nil {
		rec.Review, rec.Usage = t.reviewEnd(rec.Review), addUsage(before, rec.Usage)
	}
	cut := t.cutOff(end)
	if err := t.w.advance(t.j, rec, also{
		put: func(b *ledger.Batch) {
			b.PutRun(runRec)
			if convRec != nil {
				b.PutConversation(convRec)
			}
			for _, c := range cut {
				b.PutJob(c.rec)
			}
		},
		then: func() {
			t.j.turn = nil
			s.running--
			if t.lane != nil {
				t.lane.turn = nil
			}
			if convRec != nil {
				s.putConversation(t.conv, convRec)
			}
			if !end.lives {
				t.w.setLive(t.rec.ID, nil)
				t.leaveServer()
			}
			t.w.showRun(runRec)
			t.w.forgetDirty(rec.Worktree)
		},
	}); err != nil {
		return err
	}
	for _, c := range cut {
		t.w.stopped(c)
	}
	t.w.startNext(s)
	return nil
}

// leaveServer takes the server, whose process is gone, from its conversation.
func (t *turn) leaveServer() {
	if t.conv != nil && t.srv != nil && t.conv.server == t.srv {
		t.conv.server = nil
	}
}

// conversationEnd is the conversation's record after the turn, nil when it has
// none. An agent's session id, once known, is never lost: the one that the
// agent told wins, one that we chose holds once the agent was started.
func (t *turn) conversationEnd(end ending, runRec *ledger.Run, rec *ledger.Job) *ledger.Conversation {
	if t.conv == nil {
		rec.Usage = ownUsage(end.usage, nil)
		return nil
	}
	conv := t.conv.touched(t.j.s, rec.Updated)
	if end.ran {
		conv.Turns++
	}
	told := t.session()
	switch {
	case told != "":
		conv.Vendor = told
	case conv.Vendor == "" && end.ran:
		conv.Vendor = t.rec.Vendor
	}
	runRec.Vendor = cmp.Or(conv.Vendor, runRec.Vendor)
	rec.Usage = ownUsage(end.usage, conv.Total)
	if u := end.usage; u != nil && u.Total {
		conv.Total = &ledger.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CostUSD: u.CostUSD}
	}
	return conv
}

// ownUsage is what a job alone consumed: an agent that counts the whole
// conversation has counted the turns before it too.
func ownUsage(u *agent.Usage, before *ledger.Usage) *ledger.Usage {
	if u == nil {
		return nil
	}
	own := &ledger.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CostUSD: u.CostUSD}
	if u.Total && before != nil {
		own.InputTokens = max(0, own.InputTokens-before.InputTokens)
		own.OutputTokens = max(0, own.OutputTokens-before.OutputTokens)
		own.CostUSD = max(0, own.CostUSD-before.CostUSD)
	}
	return own
}

// cutOff ends the jobs that wait in the lane of an interrupted turn. The
// caller holds s.tr.
func (t *turn) cutOff(end ending) []stop {
	if end.state != ledger.Interrupted || t.lane == nil {
		return nil
	}
	var cut []stop
	for _, j := range t.j.s.queue {
		if j.record().Conversation == t.j.record().Conversation {
			cut = append(cut, stop{j: j, rec: j.next(ledger.Interrupted, t.j.address()+", which it waited for, was interrupted; resume that first")})
		}
	}
	return cut
}
