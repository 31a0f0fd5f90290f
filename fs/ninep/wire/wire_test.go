package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"9fans.net/go/plan9"
	"pgregory.net/rapid"

	"scvfs/ledger/fault"
)

// known are frames as the manuals, and captures of Linux's client, have them.
var known = []struct {
	dialect Dialect
	frame   string // hexadecimal
	tag     uint16
	message Message
}{
	{Plain, "13000000 64 ffff 00200000 0600 395032303030", NoTag, &Tversion{8192, "9P2000"}},
	{Linux, "15000000 64 ffff 18000200 0800 395032303030 2e4c", NoTag, &Tversion{131096, "9P2000.L"}},
	{Linux, "0b000000 07 0300 02000000", 3, &Rlerror{2}},
	{Plain, "0d000000 6b 0300 0400 6e6f7065", 3, &Rerror{"nope"}},
	{Linux, "17000000 68 0100 00000000 ffffffff 0000 0000 e8030000", 1, &Tattach{0, NoFid, "", "", 1000}},
	{Plain, "16000000 68 0100 00000000 ffffffff 0300 626f62 0000", 1, &Tattach{0, NoFid, "bob", "", 0}},
	{Linux, "19000000 6e 0000 01000000 02000000 0200 0100 61 0300 786967", 0, &Twalk{1, 2, []string{"a", "xig"}}},
	{Linux, "09000000 6f 0000 0000", 0, &Rwalk{}},
	{Linux, "17000000 74 0500 02000000 0001000000000000 00000100", 5, &Tread{2, 256, 65536}},
	{Linux, "0e000000 75 0500 03000000 616263", 5, &Rread{[]byte("abc")}},
	{Plain, "1a000000 76 0500 02000000 0000000000000000 03000000 616263", 5, &Twrite{2, 0, []byte("abc")}},
	{Linux, "0f000000 0c 0200 01000000 41000000", 2, &Tlopen{1, LWriteOnly | LCreate}},
	{Linux, "18000000 0d 0200 80 00000000 0100000000000000 00000000", 2, &Rlopen{Qid{QTDir, 0, 1}, 0}},
	{Linux, "09000000 6c 0200 0100", 2, &Tflush{1}},
	{Linux, "13000000 18 0200 01000000 ff07000000000000", 2, &Tgetattr{1, GetBasic}},
	{Linux, "0f000000 32 0200 01000000 01000000", 2, &Tfsync{1, 1}},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func reader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

func TestKnownFrames(t *testing.T) {
	for _, k := range known {
		frame := unhex(t, k.frame)
		h, m, err := ReadMessage(reader(frame), k.dialect, 1<<20)
		if err != nil || h.Tag != k.tag || !reflect.DeepEqual(m, k.message) {
			t.Errorf("%s: read %v, %+v, %v; want tag %d, %+v", k.frame, h, m, err, k.tag, k.message)
		}
		got, err := Append([]byte("before"), k.dialect, k.tag, k.message)
		if err != nil || !bytes.Equal(got, append([]byte("before"), frame...)) {
			t.Errorf("%+v: wrote %x, %v", k.message, got, err)
		}
	}
}

// every returns an empty message of each type.
func every(d Dialect) []Message {
	var all []Message
	for t := range 256 {
		if m := newMessage(d, Type(t)); m != nil {
			all = append(all, m)
		}
	}
	return all
}

func TestEachTypeIsOne(t *testing.T) {
	for d, want := range map[Dialect]int{Plain: 18 + 9, Linux: 18 + 23 + 16 + 2} {
		all := every(d)
		if len(all) != want {
			t.Errorf("%s has %d types, want %d", d, len(all), want)
		}
		for _, m := range all {
			name := reflect.TypeOf(m).Elem().Name()
			if got := m.Type().String(); got != name {
				t.Errorf("%s calls itself %s", name, got)
			}
			if request := name[0] == 'T'; request != (m.Type()%2 == 0) {
				t.Errorf("%s is type %d", name, m.Type())
			}
		}
	}
	if got := Type(255).String(); got != "type 255" {
		t.Errorf("an unknown type is %q", got)
	}
}

// fill draws the fields of a message.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 20, 60).Draw(t, "text"))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")...))
			return
		}
		if n := rapid.IntRange(0, MaxWalk).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	default:
		v.SetUint(rapid.Uint64().Draw(t, "number") >> (64 - v.Type().Bits()))
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, d := range []Dialect{Plain, Linux} {
		for _, blank := range every(d) {
			rapid.Check(t, func(t *rapid.T) {
				m := newMessage(d, blank.Type())
				fill(t, reflect.ValueOf(m).Elem())
				tag := rapid.Uint16().Draw(t, "tag")
				frame, err := Append(nil, d, tag, m)
				if err != nil {
					t.Fatal(err)
				}
				h, got, err := ReadMessage(reader(frame), d, uint32(len(frame)))
				if err != nil {
					t.Fatalf("%+v: %v", m, err)
				}
				if d == Plain { // it has no such field
					for _, x := range []Message{m, got} {
						if uid := reflect.ValueOf(x).Elem().FieldByName("UID"); uid.IsValid() && uid.CanUint() {
							uid.SetUint(0)
						}
					}
				}
				if h.Tag != tag || !reflect.DeepEqual(got, m) {
					t.Fatalf("wrote %+v, read %+v", m, got)
				}
				for cut := range len(frame) {
					if _, _, err := ReadMessage(reader(frame[:cut]), d, 1<<20); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Fatalf("%d of %d bytes: %v", cut, len(frame), err)
					}
				}
			})
		}
	}
}

// Another implementation reads what is written here, and the other way round.
func TestAnotherImplementationAgrees(t *testing.T) {
	for _, m := range []Message{
		&Tversion{8192, "9P2000"}, &Rversion{4096, "9P2000"}, &Tauth{1, "bob", "tree", 0}, &Rauth{Qid{8, 1, 2}},
		&Tattach{1, NoFid, "bob", "tree", 0}, &Rattach{Qid{QTDir, 3, 4}}, &Rerror{"no"}, &Tflush{77}, &Rflush{},
		&Twalk{1, 2, []string{"a", "", "ccc"}}, &Rwalk{[]Qid{{1, 2, 3}, {4, 5, 6}}}, &Topen{3, ORdWr | OTrunc}, &Ropen{Qid{1, 2, 3}, 99},
		&Tcreate{3, "new", DMDir | 0o700, ORead}, &Rcreate{Qid{1, 2, 3}, 99}, &Tread{1, 1 << 40, 77}, &Rread{[]byte("abc")},
		&Twrite{1, 1 << 40, []byte("abc")}, &Rwrite{3}, &Tclunk{1}, &Rclunk{}, &Tremove{1}, &Rremove{}, &Tstat{1},
		&Rstat{Stat{1, 2, Qid{3, 4, 5}, DMDir | 0o500, 7, 8, 9, "name", "uid", "gid", "muid"}}, &Twstat{1, DontTouch()}, &Rwstat{},
	} {
		frame, err := Append(nil, Plain, 42, m)
		if err != nil {
			t.Fatal(err)
		}
		call, err := plan9.UnmarshalFcall(frame)
		if err != nil {
			t.Errorf("%+v: %v", m, err)
			continue
		}
		back, err := call.Bytes()
		if err != nil || !bytes.Equal(back, frame) {
			t.Errorf("%+v: wrote %x, the other %x, %v", m, frame, back, err)
		}
	}
}

func TestAFrameOfABadSizeIsRefused(t *testing.T) {
	for _, size := range []string{"00000000", "06000000", "01100000", "ffffffff"} {
		_, err := ReadHeader(reader(unhex(t, size+"78 0100")), 4096)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("size %s: %v", size, err)
		}
	}
	if _, err := ReadHeader(reader(unhex(t, "00100000 78 0100")), 4096); err != nil {
		t.Errorf("the largest: %v", err)
	}
}

func TestBadBodiesAreRefused(t *testing.T) {
	names := func(n int) string { return "01000000 02000000 " + hex.EncodeToString([]byte{byte(n), byte(n >> 8)}) }
	for _, c := range []struct {
		name string
		d    Dialect
		t    Type
		body string
		kind fault.Kind
	}{
		{"unknown type", Plain, 200, "", fault.Unsupported},
		{"a type of the other dialect", Plain, TypeTlopen, "01000000 00000000", fault.Unsupported},
		{"a type of the other dialect", Linux, TypeTopen, "01000000 00", fault.Unsupported},
		{"too short", Linux, TypeTclunk, "010000", fault.Invalid},
		{"too long", Linux, TypeTclunk, "01000000 00", fault.Invalid},
		{"17 names", Linux, TypeTwalk, names(17) + strings.Repeat(" 0100 61", 17), fault.TooLarge},
		{"65535 names", Linux, TypeTwalk, names(65535), fault.TooLarge},
		{"names that are not there", Linux, TypeTwalk, names(3) + " 0100 61", fault.Invalid},
		{"a count beyond the frame", Plain, TypeTwrite, "01000000 0000000000000000 ffffffff 616263", fault.Invalid},
		{"a text beyond the frame", Plain, TypeTversion, "00200000 ffff 3950", fault.Invalid},
		{"a stat shorter than its length", Plain, TypeTwstat, "01000000 0900 0700 00000000000000", fault.Invalid},
		{"a stat longer than its fields", Plain, TypeTwstat, "01000000 3400 3200" + strings.Repeat("00", 50), fault.Invalid},
	} {
		if _, err := Decode(c.d, c.t, unhex(t, c.body)); !fault.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", c.name, err, c.kind)
		}
	}
}

func TestWhatDoesNotFitIsNotWritten(t *testing.T) {
	long := strings.Repeat("x", 65536)
	for _, m := range []Message{
		&Tversion{1, long},
		&Twalk{1, 2, make([]string, MaxWalk+1)},
		&Rwalk{make([]Qid, 70000)},
		&Rstat{Stat{Name: long[1:]}},
	} {
		if got, err := Append([]byte("x"), Plain, 1, m); !fault.Is(err, fault.TooLarge) || string(got) != "x" {
			t.Errorf("%T: %d bytes, %v", m, len(got), err)
		}
	}
	if _, err := AppendStat(nil, Stat{Name: long}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("stat: %v", err)
	}
	if _, err := AppendEntry(nil, Entry{Name: long}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("entry: %v", err)
	}
}

func TestDirectoryData(t *testing.T) {
	var data []byte
	var err error
	entries := []Entry{{Qid{QTDir, 0, 7}, 1, 4, "."}, {Qid{0, 0, 9}, 2, 8, "file"}}
	for i, e := range entries {
		before := len(data)
		if data, err = AppendEntry(data, e); err != nil || len(data)-before != EntrySize(e.Name) {
			t.Fatalf("entry %d takes %d bytes, %v", i, len(data)-before, err)
		}
	}
	if got, err := ParseEntries(data); err != nil || !reflect.DeepEqual(got, entries) {
		t.Errorf("entries: %+v, %v", got, err)
	}
	if _, err := ParseEntries(data[:len(data)-1]); !fault.Is(err, fault.Invalid) {
		t.Errorf("half an entry: %v", err)
	}
	stats, data := []Stat{{Name: "a", Length: 3}, {Name: "b", UID: "u", Mode: DMDir}}, nil
	for _, s := range stats {
		if data, err = AppendStat(data, s); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ParseStats(data); err != nil || !reflect.DeepEqual(got, stats) {
		t.Errorf("stats: %+v, %v", got, err)
	}
	if _, err := ParseStats(data[:len(data)-1]); !fault.Is(err, fault.Invalid) {
		t.Errorf("half a stat: %v", err)
	}
}

func TestAnswersInPlace(t *testing.T) {
	buf := append(make([]byte, DataHeader), "abcdef"...)
	want, err := Append(nil, Linux, 9, &Rread{[]byte("abcd")})
	if err != nil {
		t.Fatal(err)
	}
	if got := PutData(buf, 9, TypeRread, 4); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestErrorsHaveWordsAndNumbers(t *testing.T) {
	seen := map[string]bool{}
	for no, name := range enames {
		if seen[name] {
			t.Errorf("%q stands for two", name)
		}
		seen[name] = true
		if got, ok := Errno(name); !ok || got != no {
			t.Errorf("%q is %d, want %d", name, got, no)
		}
		// The kernel's words are the C library's, which Go has in small letters.
		if no != syscall.EOPNOTSUPP && no != syscall.ESTALE && !strings.EqualFold(name, no.Error()) {
			t.Errorf("%d is %q here and %q there", no, name, no.Error())
		}
	}
	if got := Ename(524); got != "Unknown error 524" {
		t.Errorf("an unknown one is %q", got)
	}
	if _, ok := Errno("file does not exist"); ok {
		t.Error("another server's words are known")
	}
	if m, ok := NewError(Linux, syscall.EPERM).(*Rlerror); !ok || m.Errno != 1 {
		t.Errorf("Linux: %+v", m)
	}
	if m, ok := NewError(Plain, syscall.EPERM).(*Rerror); !ok || m.Ename != "Operation not permitted" {
		t.Errorf("Plan 9: %+v", m)
	}
}
