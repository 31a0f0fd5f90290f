package ninep

import (
	"fmt"
	"strings"
	"testing"

	"scvfs/fs/ninep/wire"
)

// BenchmarkOpenReadClose is the walk, open, read and clunk of a file of 100
// bytes.
func BenchmarkOpenReadClose(b *testing.B) {
	s := serve(b, newFolder().add("f", newText(strings.Repeat("x", 100))), Options{})
	for _, d := range []wire.Dialect{wire.Linux, wire.Plain} {
		b.Run(d.String(), func(b *testing.B) {
			c := s.client(b, d)
			for b.Loop() {
				c.open(1, "f", 0)
				c.read(1, 0, 4096)
				c.clunk(1)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
		b.Run(d.String()+"/16 clients", func(b *testing.B) {
			b.SetParallelism(8) // of two processors
			b.RunParallel(func(pb *testing.PB) {
				c := s.client(b, d)
				for pb.Next() {
					c.open(1, "f", 0)
					c.read(1, 0, 4096)
					c.clunk(1)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}

// BenchmarkRead reads a mebibyte in messages of a size.
func BenchmarkRead(b *testing.B) {
	const size = 1 << 20
	s := serve(b, newFolder().add("f", newText(strings.Repeat("x", size))), Options{})
	for _, msize := range []uint32{8 << 10, 128 << 10, 512 << 10} {
		b.Run(fmt.Sprintf("msize %d", msize), func(b *testing.B) {
			c := s.dial(b)
			c.version(wire.Linux, msize)
			c.attach(0)
			c.open(1, "f", 0)
			b.SetBytes(size)
			for b.Loop() {
				for off := uint32(0); off < size; off += msize - wire.IOHeader {
					c.want(&wire.Tread{Fid: 1, Offset: uint64(off), Count: msize - wire.IOHeader})
				}
			}
		})
	}
}
