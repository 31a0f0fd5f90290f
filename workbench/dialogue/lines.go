package dialogue

import "bytes"

// MaxLine is the longest line that a dialogue takes; a longer one is skipped.
const MaxLine = 16 << 20

// Lines cuts an agent's output into lines. Its fields are its state.
type Lines struct {
	Offset  int64  `json:"offset"`            // bytes taken
	Part    []byte `json:"part,omitempty"`    // the line that has not ended
	Skipped int64  `json:"skipped,omitempty"` // its length so far, when it is too long to keep
}

// Feed calls line for each line that ends in p, without its line end, with the
// count of bytes up to there. A line longer than MaxLine comes as nil, with its
// length. The slice is only good until line returns.
func (l *Lines) Feed(p []byte, line func(end int64, text []byte, skipped int64)) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			l.keep(p)
			return
		}
		l.keep(p[:n])
		l.Offset++
		l.hand(line)
		p = p[n+1:]
	}
}

// Flush takes what has no newline after it for a line.
func (l *Lines) Flush(line func(end int64, text []byte, skipped int64)) {
	if len(l.Part) > 0 || l.Skipped > 0 {
		l.hand(line)
	}
}

func (l *Lines) keep(p []byte) {
	l.Offset += int64(len(p))
	switch {
	case l.Skipped > 0:
		l.Skipped += int64(len(p))
	case len(l.Part)+len(p) > MaxLine:
		l.Skipped, l.Part = int64(len(l.Part)+len(p)), nil
	default:
		l.Part = append(l.Part, p...)
	}
}

func (l *Lines) hand(line func(end int64, text []byte, skipped int64)) {
	part, skipped := l.Part, l.Skipped
	l.Part, l.Skipped = nil, 0
	if skipped > 0 {
		line(l.Offset, nil, skipped)
		return
	}
	line(l.Offset, bytes.TrimSuffix(part, []byte("\r")), 0)
	if cap(part) <= 1<<20 {
		l.Part = part[:0]
	}
}
