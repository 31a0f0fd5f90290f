package acp

import (
	"bytes"
	"strings"
	"testing"

	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
)

// play does what a script says, a line each: P and S give a prompt, I
// interrupts, A and D answer what was asked first, R restores, and any other
// line is the server's.
func (b *bench) play(script []byte) (begun int) {
	for line := range bytes.Lines(script) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		word := byte(0)
		if len(text) > 0 {
			word = text[0]
		}
		switch word {
		case 'P':
			if b.d.Prompt(text[1:], b.emit) == nil {
				begun++
			}
		case 'S':
			_ = b.d.Steer(text[1:], b.emit) // fails where there is nothing to steer
		case 'I':
			b.d.Interrupt(b.emit)
		case 'A', 'D':
			if len(b.waiting) > 0 {
				b.answer(dialogue.Answer{Allow: word == 'A', Words: strings.Split(string(text[1:]), "|")})
			}
		case 'R':
			b.renew = func() bool { return true }
			b.restored()
			b.renew = nil
		default:
			b.d.Feed(line, b.emit)
		}
		if n := len(b.d.Asks()); n > dialogue.MaxAsks || n != len(b.waiting) {
			b.t.Fatalf("%d asks wait, and %d were put out and not withdrawn", n, len(b.waiting))
		}
		if !b.d.Busy() && len(b.waiting) > 0 {
			b.t.Fatal("an ask outlives its turn")
		}
	}
	return begun
}

func FuzzDialogue(f *testing.F) {
	const hello = `{"id":1,"result":` + capable + "}\n" + `{"id":2,"result":{"sessionId":"s"` + offer + "}}\n"
	f.Add([]byte("Pdo it\n"+hello+`{"method":"session/update","params":{"sessionId":"s","update":`+chunked("hello")+"}}\n"+
		permissionFor("make", "execute")+"\nR\nA\n"+permissionFor("rm", "delete")+"\nD\nSmore\n"+`{"id":3,"result":{"stopReason":"end_turn"}}`+"\n"+
		`{"id":4,"result":{"stopReason":"end_turn","usage":{"inputTokens":3}}}`+"\n"), "claude", "", false)
	f.Add([]byte(hello+"P/x\nI\nPagain\n"+permissionFor("make", "execute")+"\nI\n"+`{"id":4,"result":{"stopReason":"cancelled"}}`+"\n"), "copilot", "", false)
	f.Add([]byte("Pgo on\n"+strings.Replace(hello, "resume", "x", 1)+`{"id":3,"error":{"code":-32601}}`+"\n"), "gemini", "s", true)
	f.Add([]byte("P\n"+hello+`{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":`+mixedForm+"}\nRAa|yes|3|Pear|x|2\n"), "acp", "", false)
	f.Add([]byte("P\n"+`{"id":1,"error":{"code":-32000,"message":"Authentication required"}}`+"\nPagain\n"), "pi", "", false)
	f.Add([]byte("not a server\n[1]\n\n{}\n"), "codex", "", true)
	names := agent.Builtin().Names()
	f.Fuzz(func(t *testing.T, script []byte, name, session string, full bool) {
		if len(script) > 1<<16 || session != "" && !agent.ValidSession(session) {
			return
		}
		a, ok := agent.Builtin().Lookup(name)
		if !ok {
			a = someAgent(t, names[len(name)%len(names)])
		}
		b := newBench(t, dialogue.Options{Agent: a, CWD: "/w", Session: session, Full: full})
		b.d.Open(b.emit)
		begun := b.play(script)
		busy := b.d.Busy()
		b.d.Finish(b.emit)
		if len(b.waiting) > 0 || len(b.d.Asks()) > 0 || b.d.Busy() {
			t.Fatal("something goes on after the end")
		}
		if busy {
			b.ended = append(b.ended, b.d.Outcome(agent.Exit{Code: 1}, nil))
		}
		if len(b.ended) != begun {
			t.Fatalf("%d turns were begun, and %d have ended:\n%s", begun, len(b.ended), strings.Join(b.out, "\n"))
		}
		for _, o := range b.ended {
			if (o.Status == agent.StatusCompleted) != (o.Error == "") {
				t.Fatalf("%+v", o)
			}
		}
	})
}
