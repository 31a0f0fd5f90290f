package workbench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"scvfs/ledger"
	"scvfs/workbench/activity"
	"scvfs/workbench/agent"
	"scvfs/workbench/run"
)

// stderrTail is how much of a run's standard error a failure may quote.
const stderrTail = 2 << 10

// retryEvery is how often an end that the ledger could not take (a full disk)
// is offered to it again. No event tells that there is space.
const retryEvery = time.Second

// ending is how a job ended.
type ending struct {
	state  ledger.AgentState
	detail string            // why, in a sentence; empty when the state says it all
	exit   string            // how the process ended: "exit 0", "signal KILL", "timeout 1h0m0s"
	ran    bool              // the agent itself was started
	lives  bool              // the run goes on, for the next turn
	result *io.SectionReader // nil when there is none
	source io.Closer         // what result reads from; nil when it needs no closing
	bytes  int64             // whole length of the reply, of which result may be a part
	usage  *agent.Usage
}

// say makes text the result.
func (e *ending) say(text []byte) {
	e.result, e.bytes = io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text))), int64(len(text))
}

// judge tells how a run that is over ended, by its own output, its exit, and
// whether anybody stopped it.
func (t *turn) judge(proc run.Process) ending {
	t.parser.Finish(t.log.Parsed)
	t.log.Flush()
	exit, known := proc.Exit()
	out := t.parser.Outcome(agent.Exit{Code: exit.Code, Signal: exit.Signal}, t.tail("stderr", stderrTail))
	end := verdict(t.cancelled(), exit, known, out)
	t.noteUnknown(out.Unknown)
	end.usage = out.Usage
	end.ran = exit.StartError == ""
	t.reply(&end, out)
	return end
}

// noteUnknown logs how many events of its agent the parser did not know: a
// newer version of the agent may say things that matter.
func (t *turn) noteUnknown(kinds map[string]int) {
	if len(kinds) == 0 || t.log == nil {
		return
	}
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		counts = append(counts, fmt.Sprintf("%s (%d)", kind, kinds[kind]))
	}
	t.log.Record(activity.Event{Kind: agent.Note, Text: "events of a kind that is not known: " + strings.Join(counts, ", ")})
}

// verdict is the rule of DESIGN 6: who asked first, then what killed it, then
// what the agent said, then how it exited.
func verdict(cancel *ledger.Cancel, exit run.Exit, known bool, out agent.Outcome) ending {
	end := ending{exit: exitWords(exit, known)}
	if cancel != nil && known && !exit.Ended.IsZero() && exit.Ended.Before(cancel.At) {
		cancel = nil // it had ended by itself when somebody asked
	}
	switch {
	case cancel != nil:
		end.state, end.detail = ledger.Cancelled, "by "+cancel.By
	case !known:
		end.state, end.detail = ledger.Interrupted, "its shim was killed; its processes were stopped"
	case exit.StartError != "":
		end.state, end.detail = ledger.Failed, exit.StartError
	case exit.TimedOut > 0:
		end.state, end.detail = ledger.TimedOut, fmt.Sprintf("stopped at its time limit of %s", exit.TimedOut)
	case exit.Stopped:
		end.state, end.detail = ledger.Interrupted, "its shim was told to stop by something other than scvfs"
	case out.Status == agent.StatusDeclined:
		end.state, end.detail = ledger.Declined, out.Error
	case out.Status == agent.StatusCompleted:
		end.state = ledger.Completed
	case out.Status == agent.StatusFailed || exit.Code != 0:
		end.state, end.detail = ledger.Failed, out.Error
		if end.detail == "" {
			end.detail = end.exit
		}
	default:
		end.state = ledger.Completed
	}
	return end
}

// exitWords is what the exit file shows.
func exitWords(e run.Exit, known bool) string {
	switch {
	case !known:
		return "shim killed"
	case e.StartError != "":
		return "not started"
	case e.TimedOut > 0:
		return "timeout " + e.TimedOut.String()
	case e.Signal != "":
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// reply finds the job's result: what the agent said, or the end of its output,
// or else the sentence that tells why there is none.
func (t *turn) reply(end *ending, out agent.Outcome) {
	limit := int64(t.w.limits.ResultBytes)
	switch {
	case out.ReplyTail:
		file, err := OpenRegular(t.w.opt.Runs.Path(t.rec.ID, "stdout"))
		if err != nil {
			break
		}
		size := sizeOf(file)
		if size == 0 {
			file.Close()
			break
		}
		from := max(0, size-limit)
		end.result, end.source, end.bytes = io.NewSectionReader(file, from, size-from), file, size
	case len(out.Reply) > 0:
		end.say(lastOf(out.Reply, limit))
		end.bytes = int64(len(out.Reply))
	}
}

// lastOf is the end of a text, at most limit bytes of it, and not half a
// character.
func lastOf(text []byte, limit int64) []byte {
	if int64(len(text)) <= limit {
		return text
	}
	text = text[int64(len(text))-limit:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

func sizeOf(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// tail returns the end of one of the run's files.
func (t *turn) tail(name string, limit int64) []byte {
	file, err := OpenRegular(t.w.opt.Runs.Path(t.rec.ID, name))
	if err != nil {
		return nil
	}
	defer file.Close()
	size := sizeOf(file)
	part := make([]byte, min(size, limit))
	n, _ := file.ReadAt(part, size-int64(len(part)))
	return part[:n]
}

// settle records the end: the result's file, the log's last lines, then job
// and run in one commit, and only then lets anybody see it. The slot is free
// by then.
func (t *turn) settle(end ending) {
	defer func() {
		if end.source != nil {
			end.source.Close()
		}
	}()
	if t.j.record().State.Terminal() { // a fault of ours after the end was recorded
		t.close()
		return
	}
	if t.phaseOver(&end) {
		return
	}
	if end.result == nil && end.state != ledger.Completed && end.detail != "" {
		end.say([]byte(end.detail + "\n"))
	}
	if t.untilDone("result", func() error { return t.w.writeResult(t.j.record(), end.result) }) != nil {
		return
	}
	t.logEnd(end)
	if t.untilDone("end", func() error { return t.commitEnd(end) }) != nil || end.lives {
		return
	}
	if err := t.w.opt.Runs.RemoveTmp(t.rec.ID); err != nil {
		t.w.log.Warn("a run's temporary directory stays behind", "run", t.rec.ID, "err", err)
	}
}

// logEnd writes the last lines of the activity log.
func (t *turn) logEnd(end ending) {
	if t.log == nil && t.open() != nil {
		return // told through launch; the ledger has the reason too
	}
	t.log.Record(activity.Event{Kind: agent.TurnEnded, Turn: t.rec.Turn, Status: string(end.state), Text: end.detail, Job: JobName(t.j.number)})
	if end.lives {
		return
	}
	t.log.Record(activity.Event{Kind: agent.RunEnded, Status: string(end.state), Text: end.exit})
	t.close()
}

// name is whom a line of the daemon's log is about: the job, or the run of none.
func (t *turn) name() string {
	if t.j == nil {
		return t.rec.ID
	}
	return t.j.address()
}

// untilDone tries f until it works or the daemon stops, which is its only
// error: what failed is a full disk mostly, which passes.
func (t *turn) untilDone(what string, f func() error) error {
	var tick *time.Ticker
	for {
		err := f()
		if err == nil {
			return nil
		}
		if tick == nil {
			t.w.log.Error("a job's "+what+" cannot be recorded yet; trying again", "of", t.name(), "err", err)
			tick = time.NewTicker(retryEvery)
			defer tick.Stop()
		}
		select {
		case <-tick.C:
		case <-t.w.ctx.Done():
			t.close()
			return errors.Join(errLeft, err)
		}
	}
}
