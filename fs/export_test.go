package fs

import "testing"

// PlayTranscripts is TestTranscripts over another transport, for tests that
// need packages which need this one.
func PlayTranscripts(t *testing.T, over func(t testing.TB, root Dir) Dir, same func(got, want string) bool) {
	playAll(t, over, same)
}
