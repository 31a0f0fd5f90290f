package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Check looks at the whole ledger, and returns everything that is not as it
// has to be: records that cannot be read, what Check (the function) finds, and
// pages of the file that do not fit together. No commit is written meanwhile.
func (l *Ledger) Check() []error {
	var found []error
	err := guard(func() error {
		return l.db.Update(func(tx *bolt.Tx) error {
			for err := range tx.Check() {
				found = append(found, damaged(err))
			}
			var c Contents
			bad := map[string]error{}
			c.load(tx, bad)
			for key, err := range bad {
				found = append(found, fmt.Errorf("%s: %w", key, err))
			}
			found = append(found, Check(c, bad)...)
			return errLooked
		})
	})
	if err != nil && !errors.Is(err, errLooked) {
		found = append(found, err)
	}
	return found
}

// errLooked ends a transaction that was only to look.
var errLooked = errors.New("nothing to write")

// Check returns what contradicts itself in the contents of a ledger. bad names
// the records that could not be read, as Load returns them; what they would
// have said is taken to be right.
//
// These hold at all times, whichever process dies when, because the changes
// that keep them true together are one batch:
//
//   - Each job and each conversation has its session, and a number below the
//     one that the session would give next.
//   - Serials are unique among all sessions and jobs, and none is above the
//     counter.
//   - A job or run has a time of its end when it has ended, and none before.
//   - A job of a closed session has ended, or was told to stop.
//   - A job that has not ended, and has a run, is one of the jobs of that run.
//   - A run names jobs that the session has or had, each once, oldest first.
//   - An approval has its job, and a time of its decision unless it waits; one
//     that waits is of a job that awaits input, in the run that serves it, and
//     such a job has one.
//   - The two jobs of a resume name each other, as long as both are there, and
//     the first of them has ended; so none is resumed twice.
//   - A job that is reported has ended, and one that a turn's origin names is
//     reported, by that turn alone.
func Check(c Contents, bad map[string]error) []error {
	k := &checker{
		contents: &c, bad: bad,
		sessions: map[string]*Session{}, jobs: map[string]*Job{}, runs: map[string]*Run{}, serials: map[uint64]string{},
		reports: map[string]string{},
	}
	for _, s := range c.Sessions {
		k.sessions[s.ID] = s
	}
	for _, j := range c.Jobs {
		k.jobs[address(j.Session, j.Number)] = j
	}
	for _, r := range c.Runs {
		k.runs[r.ID] = r
	}
	for _, s := range c.Sessions {
		k.serial(sessions.bucket+"/"+s.ID, s.Serial)
	}
	for _, j := range c.Jobs {
		k.job(j)
	}
	for _, conv := range c.Conversations {
		k.conversation(conv)
	}
	for _, r := range c.Runs {
		k.run(r)
	}
	for _, a := range c.Approvals {
		k.approval(a)
	}
	return k.found
}

type checker struct {
	contents *Contents
	bad      map[string]error
	sessions map[string]*Session
	jobs     map[string]*Job // by address
	runs     map[string]*Run
	serials  map[uint64]string // who has it
	reports  map[string]string // by address: the turn that reports the job
	found    []error
}

func (k *checker) say(path, format string, args ...any) {
	k.found = append(k.found, fmt.Errorf("%s %s", path, fmt.Sprintf(format, args...)))
}

// session returns the session of something; nil when it cannot be read, or,
// which is said, is missing.
func (k *checker) session(path, id string) *Session {
	s := k.sessions[id]
	if s == nil && k.bad[sessions.bucket+"/"+id] == nil {
		k.say(path, "is of session %s, which does not exist", id)
	}
	return s
}

func (k *checker) serial(path string, n uint64) {
	switch other := k.serials[n]; {
	case n == 0:
		k.say(path, "has no serial")
	case other != "":
		k.say(path, "has serial %d, as has %s", n, other)
	case n > k.contents.Serial:
		k.say(path, "has serial %d, above the counter, %d", n, k.contents.Serial)
	}
	k.serials[n] = path
}

// ending checks that a state and a time agree. What a newer scvfs meant by a
// state that this one does not know, is not known.
func (k *checker) ending(path string, state AgentState, ended time.Time) {
	if state != StateUnknown && state.Terminal() == ended.IsZero() {
		k.say(path, "is %s, but its time of ending is %q", state, timeText(ended))
	}
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func (k *checker) job(j *Job) {
	path := jobs.bucket + "/" + address(j.Session, j.Number)
	k.serial(path, j.Serial)
	k.ending(path, j.State, j.Ended)
	s := k.session(path, j.Session)
	if s != nil && j.Number >= s.NextJob {
		k.say(path, "has a number that the session has still to give: its next is %d", s.NextJob)
	}
	k.resume(path, j)
	k.awaited(path, j)
	k.reported(path, j)
	if j.State.Terminal() {
		return
	}
	if s != nil && s.Closed && j.Cancel == nil && j.State != StateUnknown {
		k.say(path, "is %s in a closed session, and was not told to stop", j.State)
	}
	if j.Run != "" && k.bad[runs.bucket+"/"+j.Run] == nil {
		r := k.runs[j.Run]
		if r == nil || r.Session != j.Session || !slices.Contains(r.Jobs, j.Number) {
			k.say(path, "is %s in run %s, which does not exist or does not serve it", j.State, j.Run)
		}
	}
}

// resume checks the links between a job, the one that it continues, and the
// one that continues it. An address can come again once a session was
// forgotten; serials tell the jobs apart.
func (k *checker) resume(path string, j *Job) {
	own := address(j.Session, j.Number)
	if first := k.jobs[j.ResumedFrom]; first != nil && first.Serial < j.Serial && first.ResumedAs != own {
		k.say(path, "resumes %s, which says that it was resumed as %q", j.ResumedFrom, first.ResumedAs)
	}
	if j.ResumedAs == "" {
		return
	}
	if !j.State.Terminal() && j.State != StateUnknown {
		k.say(path, "is %s, but was resumed as %s", j.State, j.ResumedAs)
	}
	next := k.jobs[j.ResumedAs]
	if next == nil || next.ResumedFrom == own {
		return
	}
	if host := k.sessions[next.Session]; next.Session == j.Session || host != nil && host.Serial < j.Serial {
		k.say(path, "was resumed as %s, which says that it resumes %q", j.ResumedAs, next.ResumedFrom)
	}
}

// reported checks what a job says of reports: its own, and those of the jobs
// that it tells its agent of.
func (k *checker) reported(path string, j *Job) {
	if j.Reported && !j.State.Terminal() && j.State != StateUnknown {
		k.say(path, "is %s, but reported", j.State)
	}
	if j.Origin == nil {
		return
	}
	for _, name := range j.Origin.Jobs {
		told := j.Session + "/" + name
		switch rec, by := k.jobs[told], k.reports[told]; {
		case by != "":
			k.say(path, "reports %s, as does %s", told, by)
		case rec != nil && !rec.Reported:
			k.say(path, "reports %s, which says that it was not", told)
		}
		k.reports[told] = path
	}
}

func (k *checker) conversation(c *Conversation) {
	path := conversations.bucket + "/" + c.Session + "/" + c.ID
	s := k.session(path, c.Session)
	digits, ok := strings.CutPrefix(c.ID, c.Agent+"-")
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case !ok || err != nil || n == 0:
		k.say(path, "is not named after its agent, %s, and a number", c.Agent)
	case s != nil && n >= s.NextConv[c.Agent]:
		k.say(path, "has a number that the session has still to give: its next is %d", s.NextConv[c.Agent])
	}
}

func (k *checker) run(r *Run) {
	path := runs.bucket + "/" + r.ID
	k.ending(path, r.State, r.Ended)
	s := k.sessions[r.Session]
	last := uint64(0)
	for _, n := range r.Jobs {
		if n <= last {
			k.say(path, "names its jobs in the wrong order: %d", r.Jobs)
			return
		}
		last = n
	}
	if s != nil && last >= s.NextJob && !r.State.Terminal() { // one that has ended may be of an earlier session of that name
		k.say(path, "names job %d, which the session has still to give: its next is %d", last, s.NextJob)
	}
}
