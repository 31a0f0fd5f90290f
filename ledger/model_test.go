package ledger

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scvfs/ledger/fault"
)

// model is what a ledger should hold: stored lines by their names.
type model struct {
	records          map[string]string
	serial, approval uint64
}

func (m *model) clone() *model {
	c := &model{map[string]string{}, m.serial, m.approval}
	for k, v := range m.records {
		c.records[k] = v
	}
	return c
}

// dump is what Dump should write, in the order of the keys.
func (m *model) dump() string {
	lines := []string{`{"key":"meta/schema","value":2}`}
	if m.serial > 0 {
		lines = append(lines, fmt.Sprintf(`{"key":"meta/serial","value":%d}`, m.serial))
	}
	if m.approval > 0 {
		lines = append(lines, fmt.Sprintf(`{"key":"meta/approval","value":%d}`, m.approval))
	}
	for _, kind := range []string{"sessions/", "jobs/", "conversations/", "runs/", "approvals/"} {
		var keys []string
		for key := range m.records {
			if strings.HasPrefix(key, kind) {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b string) int { // a session's before those of one whose name is longer
			return strings.Compare(strings.ReplaceAll(a, "/", sep), strings.ReplaceAll(b, "/", sep))
		})
		for _, key := range keys {
			lines = append(lines, fmt.Sprintf(`{"key":%q,"value":%s}`, key, m.records[key]))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// orphans tells whether a job or a conversation of the session is left.
func (m *model) orphans(session string) bool {
	for key := range m.records {
		if strings.HasPrefix(key, "jobs/"+session+"/") || strings.HasPrefix(key, "conversations/"+session+"/") {
			return true
		}
	}
	return false
}

// draw adds a random change to the batch and makes it in the model. It returns
// the name of a session that the change deleted.
func (m *model) draw(t *rapid.T, b *Batch) (deleted string) {
	session := rapid.SampledFrom([]string{"a", "a-b", "ab"}).Draw(t, "session")
	number := rapid.Uint64Range(1, 9).Draw(t, "number") // one digit: sorted as text too
	serial := rapid.Uint64Range(1, 50).Draw(t, "serial")
	text := rapid.SampledFrom([]string{"", "x", strings.Repeat("long ", 300)}).Draw(t, "text")
	conv, run := fmt.Sprintf("sh-%d", number), fmt.Sprintf("sh-%06d", number)
	put := func(name string, rec record) {
		_, value, err := encode(rec)
		if err != nil {
			t.Fatal(err)
		}
		m.records[name] = string(value)
	}
	switch what := rapid.IntRange(0, 10).Draw(t, "what"); what {
	case 0:
		s := aSession(session, serial, number)
		s.Label = text
		b.PutSession(s)
		put("sessions/"+session, s)
		m.serial = max(m.serial, serial)
	case 1:
		j := aJob(session, number, serial)
		j.Detail = text
		b.PutJob(j)
		put("jobs/"+address(session, number), j)
		m.serial = max(m.serial, serial)
	case 2:
		c := &Conversation{Session: session, ID: conv, CWD: text}
		b.PutConversation(c)
		put("conversations/"+session+"/"+conv, c)
	case 3:
		r := &Run{ID: run, Detail: text}
		b.PutRun(r)
		put("runs/"+run, r)
	case 4:
		b.DeleteJob(session, number)
		delete(m.records, "jobs/"+address(session, number))
	case 5:
		b.DeleteConversation(session, conv)
		delete(m.records, "conversations/"+session+"/"+conv)
	case 6:
		b.DeleteRun(run)
		delete(m.records, "runs/"+run)
	case 7:
		b.RaiseApproval(serial)
		m.approval = max(m.approval, serial)
	case 8:
		a := anApproval(number, session, number)
		a.Reason = text
		b.PutApproval(a)
		put(fmt.Sprintf("approvals/%d", number), a)
		m.approval = max(m.approval, number)
	case 9:
		b.DeleteApproval(number)
		delete(m.records, fmt.Sprintf("approvals/%d", number))
	case 10:
		b.DeleteSession(session)
		delete(m.records, "sessions/"+session)
		return session
	}
	return ""
}

// step commits a batch of random changes. The model tells whether the ledger
// has to refuse it.
func (m *model) step(t *rapid.T, l *Ledger) *model {
	next, b := m.clone(), new(Batch)
	var deleted []string
	for range rapid.IntRange(0, 8).Draw(t, "changes") {
		if id := next.draw(t, b); id != "" {
			deleted = append(deleted, id)
		}
	}
	refuse := slices.ContainsFunc(deleted, func(id string) bool {
		return next.records["sessions/"+id] == "" && next.orphans(id)
	})
	switch err := l.Commit(b); {
	case refuse && !fault.Is(err, fault.Busy):
		t.Fatalf("a session was deleted under its jobs: %v", err)
	case refuse:
		return m
	case err != nil:
		t.Fatal(err)
	}
	return next
}

func TestTheLedgerHoldsWhatAMapWould(t *testing.T) {
	top := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(top, "state")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		l, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { l.Close() }()
		m := &model{records: map[string]string{}}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			l.db.NoSync = true // nothing here dies; it is the contents that are looked at
			m = m.step(t, l)
			if rapid.IntRange(0, 4).Draw(t, "reopen") == 0 {
				l.Close()
				if l, err = Open(dir, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			if err := l.Dump(&out); err != nil {
				t.Fatal(err)
			}
			if got, want := out.String(), m.dump(); got != want {
				t.Fatalf("the ledger holds\n%s\nwant\n%s", got, want)
			}
		}
	})
}
