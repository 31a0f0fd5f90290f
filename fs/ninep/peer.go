package ninep

import (
	"net"
	"os"

	"golang.org/x/sys/unix"

	"scvfs/fs"
	"scvfs/ledger/fault"
)

// callerOf finds out who is at the other end. A unix socket's peer is who
// connected; whoever got the connection from it afterwards counts as that one,
// and so do all whose traffic a forwarding sshd passes on. Of a TCP peer
// nothing is known; who could reach the address is taken for the owner.
func callerOf(nc net.Conn) (fs.Caller, error) {
	socket, ok := nc.(*net.UnixConn)
	if !ok {
		return fs.Caller{UID: uint32(os.Geteuid()), Bound: true}, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return fs.Caller{}, fault.New(fault.Internal, "the peer of a socket cannot be found out: %w", err)
	}
	var peer *unix.Ucred
	var peerErr error
	err = raw.Control(func(fd uintptr) { peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err == nil {
		err = peerErr
	}
	if err != nil {
		return fs.Caller{}, fault.New(fault.Internal, "the peer of a socket cannot be found out: %w", err)
	}
	return fs.Caller{PID: int(peer.Pid), UID: peer.Uid, Bound: true}, nil
}
