package ledger

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"scvfs/ledger/fault"
)

// maxRecord bounds a record, in bytes as it is stored. Texts of any length are
// files beside the ledger.
const maxRecord = 1 << 20

// kind is one of the kinds of records: the bucket that holds them, how
// their keys are told to people, and whether one can be read.
type kind struct {
	bucket   string
	text     func(key []byte) string
	readable func(key, value []byte) error
}

var (
	sessions      = &kind{"sessions", plainText, readable[Session]}
	jobs          = &kind{"jobs", jobText, readable[Job]}
	conversations = &kind{"conversations", conversationText, readable[Conversation]}
	runs          = &kind{"runs", plainText, readable[Run]}

	kinds = []*kind{sessions, jobs, conversations, runs, approvals}
)

// path names a record: the key of what Load returns for unreadable ones.
func (k *kind) path(key []byte) string { return k.bucket + "/" + k.text(key) }

// record is what all of them have in common.
type record interface {
	// key returns the record's key in its bucket, or why it can have none.
	key() (string, error)
	// version is where the schema version is kept.
	version() *int
	// paths returns the fields that hold file names, whose bytes matter.
	paths() []string
}

var (
	_ record = (*Session)(nil)
	_ record = (*Job)(nil)
	_ record = (*Conversation)(nil)
	_ record = (*Run)(nil)
)

func (s *Session) key() (string, error)      { return sessionKey(s.ID) }
func (j *Job) key() (string, error)          { return jobKey(j.Session, j.Number) }
func (c *Conversation) key() (string, error) { return conversationKey(c.Session, c.ID) }
func (r *Run) key() (string, error)          { return runKey(r.ID) }

func (s *Session) version() *int      { return &s.V }
func (j *Job) version() *int          { return &j.V }
func (c *Conversation) version() *int { return &c.V }
func (r *Run) version() *int          { return &r.V }

func (s *Session) paths() []string      { return []string{s.Workspace} }
func (j *Job) paths() []string          { return []string{j.Workspace, j.CWD, j.Worktree, j.Call.CWD} }
func (c *Conversation) paths() []string { return []string{c.CWD, c.Worktree} }
func (r *Run) paths() []string          { return []string{r.CWD} }

// sep stands between the parts of a key. No name holds it, so all keys of a
// session have one prefix, and no other session's key has it.
const sep = "\x00"

func sessionKey(id string) (string, error) {
	if len(id) > 64 || !isName(id, false) {
		return "", invalid("%q cannot name a session", id)
	}
	return id, nil
}

// jobKey ends in the number, the most significant byte first, so that the
// order of the keys is the order of the numbers.
func jobKey(session string, number uint64) (string, error) {
	prefix, err := sessionKey(session)
	if err != nil {
		return "", err
	}
	if number == 0 {
		return "", invalid("a job of session %s has no number", session)
	}
	return string(binary.BigEndian.AppendUint64([]byte(prefix+sep), number)), nil
}

func conversationKey(session, id string) (string, error) {
	prefix, err := sessionKey(session)
	if err != nil {
		return "", err
	}
	if !isName(id, true) {
		return "", invalid("%q cannot name a conversation of session %s", id, session)
	}
	return prefix + sep + id, nil
}

func runKey(id string) (string, error) {
	if !isName(id, true) {
		return "", invalid("%q cannot name a run", id)
	}
	return id, nil
}

// nameMax bounds the names that the daemon makes up itself.
const nameMax = 200

// isName tells whether s is a name of one path component that needs no quoting
// in a shell: lower case letters and digits, and . _ - but not first. The
// configuration may name an agent in upper case, and runs are named after it.
func isName(s string, upper bool) bool {
	for i, b := range []byte(s) {
		switch {
		case 'a' <= b && b <= 'z', '0' <= b && b <= '9':
		case 'A' <= b && b <= 'Z' && upper:
		case i > 0 && (b == '.' || b == '_' || b == '-'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= nameMax
}

func plainText(key []byte) string {
	if s := string(key); isName(s, true) {
		return s
	}
	return strconv.Quote(string(key))
}

func jobText(key []byte) string {
	session, number, ok := strings.Cut(string(key), sep)
	if !ok || len(number) != 8 || !isName(session, false) {
		return strconv.Quote(string(key))
	}
	return address(session, binary.BigEndian.Uint64([]byte(number)))
}

func conversationText(key []byte) string {
	session, id, ok := strings.Cut(string(key), sep)
	if !ok || !isName(session, false) || !isName(id, true) {
		return strconv.Quote(string(key))
	}
	return session + "/" + id
}

// address is how a job is named across sessions: <session>/job-<n>.
func address(session string, number uint64) string {
	return session + "/job-" + strconv.FormatUint(number, 10)
}

// encode returns a record's key and what is stored under it, stamped with the
// version. JSON holds no bytes that are not text; in a sentence that is of no
// matter, in a file name it would name another file.
func encode(rec record) (key string, value []byte, err error) {
	if key, err = rec.key(); err != nil {
		return "", nil, err
	}
	for _, path := range rec.paths() {
		if !utf8.ValidString(path) || strings.Contains(path, sep) {
			return "", nil, invalid("the path %q is not UTF-8 text, which records hold; rename that directory", path)
		}
	}
	// A record that others see already has the version: it is not written to.
	if v := rec.version(); *v != Version {
		*v = Version
	}
	if value, err = json.Marshal(rec); err != nil {
		return "", nil, invalid("a record cannot be written as JSON: %w", err)
	}
	if len(value) > maxRecord {
		return "", nil, fault.New(fault.TooLarge, "a record of %d bytes is larger than the %d that the ledger takes", len(value), maxRecord)
	}
	return key, value, nil
}

// decode reads what is stored under key. Fields that it does not know are left
// out, states that it does not know are StateUnknown; a record of a newer
// version, or one that belongs under another key, cannot be read.
func decode[T any, P interface {
	*T
	record
}](key, value []byte) (P, error) {
	rec := P(new(T))
	err := json.Unmarshal(value, rec)
	v := *rec.version()
	switch {
	case v > Version:
		return nil, fault.New(fault.Unsupported, "the record is of version %d, and this scvfs knows no more than %d: a newer one can read it", v, Version)
	case err != nil:
		return nil, fault.New(fault.Internal, "the record cannot be read: %w", err)
	case v < 1:
		return nil, fault.New(fault.Internal, "the record tells no version")
	}
	own, err := rec.key()
	if err != nil || own != string(key) {
		return nil, fault.New(fault.Internal, "the record belongs under another key, %q", own)
	}
	*rec.version() = Version
	return rec, nil
}

func readable[T any, P interface {
	*T
	record
}](key, value []byte) error {
	_, err := decode[T, P](key, value)
	return err
}
