package proc

import "bytes"

// maxArgs is how much of a command line is looked at.
const maxArgs = 16 << 10

// Args returns the command line of a process, or of a thread's process; nil
// for a zombie, for a thread of the kernel, and for one that is longer than
// 16 KiB. fault.NotFound when there is none.
func Args(pid int) ([]string, error) {
	var buf [maxArgs]byte
	b, err := slurp(pid, "cmdline", buf[:])
	if err != nil || len(b) == 0 || len(b) == maxArgs {
		return nil, err
	}
	var args []string
	for a := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		args = append(args, string(a))
	}
	return args, nil
}
