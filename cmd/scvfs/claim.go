package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"scvfs/ledger/fault"
)

// claimMount makes this process the only one that serves a mount point, until
// the claim is closed or the process dies. The ledger's lock does not do: two
// daemons can have two states and one mount point, and the second would take
// the first's mount for a dead one.
//
// The claim is a socket in the abstract namespace, which leaves no file and
// tells who holds it.
func claimMount(point string) (*net.UnixListener, error) {
	h := fnv.New128a()
	h.Write([]byte(point))
	at := &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@scvfs-mount-%d-%x", os.Getuid(), h.Sum(nil))}
	claim, err := net.ListenUnix("unix", at)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fault.New(fault.Busy, "another scvfs%s serves %s; stop it, or choose another --mount", holder(at), point)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "the mount point %s cannot be claimed: %w", point, err)
	}
	return claim, nil
}

// holder names the process behind a claim, as far as it tells.
func holder(at *net.UnixAddr) string {
	conn, err := net.DialUnix("unix", nil, at)
	if err != nil {
		return ""
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return ""
	}
	var peer *unix.Ucred
	if raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", peer.Pid)
}
