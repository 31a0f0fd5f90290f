package wire

import (
	"bytes"
	"testing"
)

func FuzzDecode(f *testing.F) {
	for _, k := range known {
		frame := unhex(f, k.frame)
		f.Add(k.dialect == Linux, frame)
	}
	f.Fuzz(func(t *testing.T, linux bool, frame []byte) {
		d := Plain
		if linux {
			d = Linux
		}
		h, m, err := ReadMessage(reader(frame), d, 1<<16)
		if err != nil {
			return
		}
		again, err := Append(nil, d, h.Tag, m)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", m, err)
		}
		if want := frame[:h.Size]; !bytes.Equal(again, want) && h.Type != TypeTfsync {
			t.Fatalf("read %x, wrote %x", want, again)
		}
	})
}

func FuzzDirectoryData(f *testing.F) {
	entry, _ := AppendEntry(nil, Entry{Name: "x"})
	stat, _ := AppendStat(nil, Stat{Name: "x"})
	f.Add(entry)
	f.Add(stat)
	f.Fuzz(func(t *testing.T, data []byte) {
		var again []byte
		if entries, err := ParseEntries(data); err == nil {
			for _, e := range entries {
				again, _ = AppendEntry(again, e)
			}
			if !bytes.Equal(again, data) {
				t.Fatalf("read %x, wrote %x", data, again)
			}
		}
		again = nil
		if stats, err := ParseStats(data); err == nil {
			for _, s := range stats {
				again, _ = AppendStat(again, s)
			}
			if !bytes.Equal(again, data) {
				t.Fatalf("read %x, wrote %x", data, again)
			}
		}
	})
}
