package dialoguetest

import (
	"os"
	"path/filepath"
	"strings"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

var allow = dialogue.Answer{Allow: true}

func allowed(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt(c.Needing(c.touch("one"), "SAY: It is there."))
	q := v.Asked()
	if q.Kind != dialogue.Permission || q.Risk != dialogue.Process || !strings.Contains(q.Summary, "run `"+c.touch("one")+"`") {
		c.T.Errorf("it asks %+v", q)
	}
	c.touched("one", false)
	v.Answer(q, allow)
	o := v.Ended(agent.StatusCompleted, "It is there.")
	if u := o.Usage; u == nil || u.InputTokens == 0 || u.OutputTokens == 0 || u.Total {
		c.T.Errorf("it used %+v", u)
	}
	if o.Session == "" || o.Session != v.D.Session() {
		c.T.Errorf("session %q and %q", o.Session, v.D.Session())
	}
	c.touched("one", true)
	c.close(v, agent.StatusCompleted)
}

func denied(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt(c.Needing(c.touch("one"), "SAY: It was not to be."))
	v.Answer(v.Asked(), dialogue.Answer{Reason: "leave that alone"})
	v.Did(agent.ToolFailed, "not allowed: "+c.touch("one"))
	v.Ended(agent.StatusCompleted, "It was not to be.")
	c.touched("one", false)
	c.close(v, agent.StatusCompleted)
}

func twoAtOnce(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt(strings.NewReplacer("touch one", c.touch("one"), "touch two", c.touch("two")).Replace(c.Real.Two))
	first, second := v.Asked(), v.Asked()
	if len(v.D.Asks()) != 2 {
		c.T.Errorf("%d wait", len(v.D.Asks()))
	}
	v.Answer(second, allow)
	v.Answer(first, dialogue.Answer{})
	v.Ended(agent.StatusCompleted, "")
	c.touched("one", strings.Contains(second.Summary, "/one`"))
	c.touched("two", strings.Contains(second.Summary, "/two`"))
	c.close(v, agent.StatusCompleted)
}

func asksBack(c *Rehearsal) {
	v := c.Start(func(o *dialogue.Options) { o.Mode = c.Real.Questions })
	v.Prompt("ASK: Which color? | Red | Blue\nRESULT")
	q := v.Asked()
	if q.Kind != dialogue.Question || len(q.Questions) != 1 || q.Questions[0].Text != "Which color?" || strings.Join(q.Questions[0].Options, " ") != "Red Blue" {
		c.T.Errorf("it asks %+v", q)
	}
	v.Answer(q, dialogue.Answer{Allow: true, Words: []string{"Blue, of course"}})
	v.Ended(agent.StatusCompleted, "Blue, of course")
	v.Prompt("ASK: Which other? | Green | Grey\nRESULT")
	v.Answer(v.Asked(), dialogue.Answer{Reason: "nobody is here"})
	v.Ended(agent.StatusCompleted, "nobody is here")
	c.close(v, agent.StatusCompleted)
}

func interrupted(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt(c.Needing(c.long(), "SAY: no"))
	v.Answer(v.Asked(), allow)
	c.until(v, "begun")
	v.Interrupt()
	v.Ended(agent.StatusFailed, "it was interrupted")
	v.Prompt("HISTORY")
	v.Ended(agent.StatusCompleted, "2 user prompts")
	c.close(v, agent.StatusCompleted)
}

func interruptedAsking(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt(c.Needing(c.touch("one"), "SAY: no"))
	q := v.Asked()
	v.Interrupt()
	if gone := v.Until("withdrawal", func(o dialogue.Output) bool { return o.Gone != "" }); gone.Gone != q.ID {
		c.T.Errorf("%s is withdrawn, not %s", gone.Gone, q.ID)
	}
	v.Ended(agent.StatusFailed, "it was interrupted")
	c.touched("one", false)
	c.close(v, agent.StatusFailed)
}

func interruptedAtOnce(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt("SLEEP: 30\nSAY: late")
	v.Interrupt()
	v.Ended(agent.StatusFailed, "it was interrupted")
	v.Prompt("SAY: and now?")
	v.Ended(agent.StatusCompleted, "and now?")
	c.close(v, agent.StatusCompleted)
}

// interruptedWarm is interruptedAtOnce in a process that is at work already,
// which reads the two messages together.
func interruptedWarm(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt("SAY: first")
	v.Ended(agent.StatusCompleted, "first")
	v.Prompt("SLEEP: 30\nSAY: late")
	v.Interrupt()
	v.Ended(agent.StatusFailed, "it was interrupted")
	c.close(v, agent.StatusFailed)
}

func steered(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt(c.Needing("touch "+filepath.Join(c.Dir, "begun")+" && until [ -e "+filepath.Join(c.Dir, "go")+" ]; do :; done", "SAY: first"))
	v.Answer(v.Asked(), allow)
	c.until(v, "begun")
	if !v.D.Steerable() {
		v.fail("it cannot be steered")
	}
	v.Steer("HISTORY")
	v.Did(agent.Steered, "HISTORY")
	if err := os.WriteFile(filepath.Join(c.Dir, "go"), nil, 0o600); err != nil {
		c.T.Fatal(err)
	}
	v.Ended(agent.StatusCompleted, "2 user prompts")
	c.close(v, agent.StatusCompleted)
}

// steeredLate steers while the model answers for the last time: the text still
// belongs to the turn.
func steeredLate(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt("SLEEP: 2\nSAY: first")
	v.Steerable()
	v.Steer("SAY: second")
	v.Ended(agent.StatusCompleted, "second")
	c.close(v, agent.StatusCompleted)
}

func secondTurn(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt("SAY: first")
	one := v.Ended(agent.StatusCompleted, "first")
	v.Prompt("HISTORY")
	two := v.Ended(agent.StatusCompleted, "2 user prompts")
	if one.Session != two.Session || two.Usage.OutputTokens > 500 {
		c.T.Errorf("%+v and %+v", one, two)
	}
	c.close(v, agent.StatusCompleted)
}

func resumed(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt("SAY: first")
	session := v.Ended(agent.StatusCompleted, "first").Session
	c.close(v, agent.StatusCompleted)
	v = c.Start(func(o *dialogue.Options) { o.Session = session })
	v.Prompt("HISTORY")
	o := v.Ended(agent.StatusCompleted, "2 user prompts")
	if o.Session != session || o.Usage == nil || o.Usage.OutputTokens > 500 {
		c.T.Errorf("%+v after session %s", o, session)
	}
	v.Prompt(c.Needing(c.touch("one"), "SAY: no"))
	v.Answer(v.Asked(), dialogue.Answer{})
	v.Ended(agent.StatusCompleted, "no")
	c.touched("one", false)
	c.close(v, agent.StatusCompleted)
}

func unknown(c *Rehearsal) {
	v := c.Start(func(o *dialogue.Options) { o.Session = "01a227ab-26b0-7492-8294-a7de574ddaa7" })
	v.Prompt("SAY: hi")
	for v.D.Busy() && v.read() {
	}
	if v.D.Busy() { // it exits by itself
		v.Close(1)
		o := v.D.Outcome(agent.Exit{Code: 1}, []byte(v.stderr()))
		if o.Status != agent.StatusFailed || !strings.Contains(o.Error, "does not know the session") || o.Session != "" {
			v.fail(DescribeOutcome(o))
		}
		return
	}
	v.Ended(agent.StatusFailed, "does not know the session")
	v.Close(0, 1)
}

func refused(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt("REFUSE: I will not do that.")
	v.Ended(agent.StatusDeclined, "")
	c.close(v, agent.StatusDeclined)
}

func broken(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt("FAIL: 500 the server is down")
	v.Ended(agent.StatusFailed, "model service failed")
	v.Prompt("SAY: again")
	v.Ended(agent.StatusCompleted, "again")
	c.close(v, agent.StatusCompleted)
}

// adopted stops to read while it is asked, and another dialogue goes on.
func adopted(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt(c.Needing(c.touch("one"), c.Needing(c.touch("two")), "SAY: Both."))
	q := v.Asked()
	v.Again()
	asks := v.D.Asks()
	if len(asks) != 1 || asks[0].ID != q.ID || string(asks[0].Request) != string(q.Request) {
		v.fail("another one is asked, or none")
	}
	v.Answer(asks[0], allow)
	v.Again()
	second := v.Asked()
	v.Again()
	v.Answer(second, allow)
	v.Again()
	v.Ended(agent.StatusCompleted, "Both.")
	c.touched("one", true)
	c.touched("two", true)
	c.close(v, agent.StatusCompleted)
}

func full(c *Rehearsal) {
	v := c.Start(func(o *dialogue.Options) { o.Full = true })
	v.Prompt("RUN: " + c.touch("one") + "\nSAY: done")
	v.Ended(agent.StatusCompleted, "done")
	c.touched("one", true)
	if strings.Contains(v.Transcript(), "ask ") {
		v.fail("it asked")
	}
	session := v.D.Session()
	c.close(v, agent.StatusCompleted)

	// The same conversation without full permissions asks again.
	v = c.Start(func(o *dialogue.Options) { o.Session = session })
	v.Prompt(c.Needing(c.touch("two"), "RUN: "+c.touch("three"), "SAY: no"))
	v.Answer(v.Asked(), dialogue.Answer{})
	for v.D.Busy() {
		for _, q := range v.D.Asks() {
			v.Answer(q, dialogue.Answer{})
		}
		if !v.read() {
			v.fail("it has ended")
		}
	}
	v.Ended(agent.StatusCompleted, "no")
	c.touched("two", false)
	c.touched("three", false)
	c.close(v, agent.StatusCompleted)
}

// killed ends the process in the middle of a turn.
func killed(c *Rehearsal) {
	v := c.Start(nil)
	v.Prompt(c.Needing(c.touch("one"), "SAY: no"))
	q := v.Asked()
	_ = v.cmd.Process.Kill()
	for v.read() {
	}
	v.D.Finish(v.emit)
	if gone := v.Until("withdrawal", func(o dialogue.Output) bool { return o.Gone != "" }); gone.Gone != q.ID {
		c.T.Errorf("%s is withdrawn, not %s", gone.Gone, q.ID)
	}
	if o := v.D.Outcome(agent.Exit{Code: -1, Signal: "KILL"}, nil); o.Status != agent.StatusFailed || !strings.Contains(o.Error, "was killed by signal KILL") || o.Session == "" {
		v.fail(DescribeOutcome(o))
	}
}
