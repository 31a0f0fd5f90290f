package workbench

import (
	"strings"
	"testing"

	"scvfs/ledger"
	"scvfs/ledger/fault"
	"scvfs/workbench/dialogue"
)

var (
	colour = ledger.Question{Text: "Which colour?", Options: []string{"Red", "dark\nBlue", "3"}}
	sizes  = ledger.Question{Text: "Which sizes?", Options: []string{"small", "large"}, Multi: true}
	free   = ledger.Question{Text: "What name?"}
	truth  = ledger.Question{Text: "Really?", Options: []string{"Yes", "No"}}
)

func TestAnswersAreRead(t *testing.T) {
	for _, tt := range []struct {
		questions []ledger.Question // none: a permission
		text      string
		want      string // "yes", "no", "no: WHY", "yes: WORDS|WORDS", or the refusal
	}{
		{nil, "yes", "yes"},
		{nil, "\n# comment\n Yes \r\n", "yes"},
		{nil, "no", "no"},
		{nil, "NO\tit is in  use", "no: it is in  use"},
		{nil, "", "nothing is answered"},
		{nil, "# yes", "nothing is answered"},
		{nil, "yes please", `yes takes no words, but "please" follows`},
		{nil, "yes\nno", "2 lines are more than one answer"},
		{nil, "y", `"y" is no answer: write yes or no`},
		{nil, "yesno", `"yesno" is no answer`},
		{nil, "ye\xff", "the answer is no text"},
		{[]ledger.Question{colour}, "red", "yes: Red"},
		{[]ledger.Question{colour}, "dark blue", "yes: dark\nBlue"},
		{[]ledger.Question{colour}, "2", "yes: dark\nBlue"},
		{[]ledger.Question{colour}, "3", "yes: 3"},
		{[]ledger.Question{colour}, "light green", "yes: light green"},
		{[]ledger.Question{colour}, "red, 2", "yes: red, 2"},
		{[]ledger.Question{colour}, "4", `"4" is none of the options: 1 Red, 2 dark Blue, 3 3; for words of your own write 1: WORDS`},
		{[]ledger.Question{colour}, "-1", `"-1" is none of the options`},
		{[]ledger.Question{colour}, "yes", `"yes" is none of the options`},
		{[]ledger.Question{colour}, "1: 4", "yes: 4"},
		{[]ledger.Question{colour}, "1: no", "yes: no"},
		{[]ledger.Question{colour}, "1:2", "yes: dark\nBlue"},
		{[]ledger.Question{colour}, "no", "no: the owner answers none of it"},
		{[]ledger.Question{colour}, "", "it asks 1 question, and the text answers 0"},
		{[]ledger.Question{colour}, "red\nred", "it asks 1 question, and the text answers 2"},
		{[]ledger.Question{truth}, "no", "yes: No"},
		{[]ledger.Question{truth}, "yes", "yes: Yes"},
		{[]ledger.Question{free}, "yes", "yes: yes"},
		{[]ledger.Question{free}, "7", "yes: 7"},
		{[]ledger.Question{free}, "2: a", "yes: 2: a"},
		{[]ledger.Question{free}, "no", "no: the owner answers none of it"},
		{[]ledger.Question{free}, "1: #x", "yes: #x"},
		{[]ledger.Question{sizes}, "1,large", "yes: small, large"},
		{[]ledger.Question{sizes}, "2", "yes: large"},
		{[]ledger.Question{sizes}, "small, huge", "yes: small, huge"},
		{[]ledger.Question{colour, free}, "red\nbob", "yes: Red|bob"},
		{[]ledger.Question{colour, free}, "2: bob\n1: red", "yes: Red|bob"},
		{[]ledger.Question{colour, free}, "2: bob", "question 1 is not answered"},
		{[]ledger.Question{colour, free}, "1: red\n1: red", "question 1 is answered twice"},
		{[]ledger.Question{colour, free}, "red", "it asks 2 questions, and the text answers 1: write a line for each, all in one write, or no"},
		{[]ledger.Question{colour, free}, "no", "no: the owner answers none of it"},
		{[]ledger.Question{colour, free}, "yes", "it asks 2 questions, and the text answers 1"},
		{[]ledger.Question{free, free}, "3: x\ny", "yes: 3: x|y"},
	} {
		rec := &ledger.Approval{Kind: string(dialogue.Permission), Questions: tt.questions}
		if len(tt.questions) > 0 {
			rec.Kind = string(dialogue.Question)
		}
		a, err := ParseAnswer(rec, tt.text)
		got := "no"
		switch {
		case err != nil && !fault.Is(err, fault.Invalid):
			t.Errorf("%q: %v is of kind %v", tt.text, err, fault.KindOf(err))
			continue
		case err != nil:
			got = err.Error()
			if strings.Contains(got, tt.want) {
				continue
			}
		case a.Allow && len(a.Words) > 0:
			got = "yes: " + strings.Join(a.Words, "|")
		case a.Allow:
			got = "yes"
		case a.Reason != "":
			got = "no: " + a.Reason
		}
		if got != tt.want {
			t.Errorf("%q to %d questions: %s, want %s", tt.text, len(tt.questions), got, tt.want)
		}
	}
}

func TestANumberIsCutOutOfALine(t *testing.T) {
	for line, want := range map[string]struct {
		text string
		n    uint64
	}{
		"yes":                {"yes", 0},
		"yes 17":             {"yes", 17},
		" No  17  not  now ": {"No not now", 17},
		"no not 17":          {"no not 17", 0},
		"no 0":               {"no 0", 0},
		"red 17":             {"red 17", 0},
		"":                   {"", 0},
	} {
		if text, n := CutNumber(line); text != want.text || n != want.n {
			t.Errorf("%q: %q, %d", line, text, n)
		}
	}
}

// FuzzParseAnswer feeds any text: what is taken answers each question, with
// nothing that the text does not hold.
func FuzzParseAnswer(f *testing.F) {
	for _, seed := range []string{"yes", "no", "no why", "1: a\n2: b", "red\n1,2", "#\n\n3", "2:2\n1:1\n", "\xff", "9999999999999999999: x"} {
		f.Add(seed, uint8(2), true)
		f.Add(seed, uint8(0), false)
	}
	all := []ledger.Question{colour, sizes, free, truth}
	f.Fuzz(func(t *testing.T, text string, questions uint8, question bool) {
		rec := &ledger.Approval{Kind: string(dialogue.Permission), Questions: all[:int(questions)%(len(all)+1)]}
		if question {
			rec.Kind = string(dialogue.Question)
		}
		CutNumber(text)
		a, err := ParseAnswer(rec, text)
		switch asked := question && len(rec.Questions) > 0; {
		case err != nil:
			if !fault.Is(err, fault.Invalid) || a.Allow || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("%v of kind %v, %+v", err, fault.KindOf(err), a)
			}
		case a.Allow && asked && len(a.Words) != len(rec.Questions), !asked && len(a.Words) > 0, !a.Allow && len(a.Words) > 0:
			t.Fatalf("%+v answers %d questions", a, len(rec.Questions))
		case a.Allow && a.Reason != "":
			t.Fatalf("allowed, and why not: %+v", a)
		}
		for i, word := range a.Words {
			if _, known := option(rec.Questions[i], word); strings.TrimSpace(word) == "" || !known && !strings.Contains(text, word) && !rec.Questions[i].Multi {
				t.Fatalf("word %q of %q", word, text)
			}
		}
	})
}
