package fusefs

import (
	"time"

	"scvfs/ledger/fault"
)

const (
	// settle is how long those who still use a mount have to leave it before
	// they are cut off.
	settle = 500 * time.Millisecond
	// stuck is how long requests in the tree have to end after that.
	stuck = 10 * time.Second
)

// Unmount takes the mount away and waits as Wait does. When files are open in
// it, or directories in use, it takes the name away at once, lets their users
// go on for half a second, and then cuts them off: their calls fail with
// ECONNABORTED or ENOTCONN. It may be called again, and after an unmount by
// somebody else.
//
// Errors are fault.Busy when something else is mounted over it, or when users
// stay and this process has no means to cut them off (it is not root's, and
// the control file system is not mounted); they are free when this process
// ends. And fault.Timeout when a request in the tree does not end.
func (s *Server) Unmount() error {
	s.leaving.Store(true)
	if s.ended(0) {
		return nil
	}
	if err := s.takeAway(); err != nil {
		return err
	}
	if s.ended(settle) {
		return nil
	}
	if err := s.abort(s.device); err != nil {
		return fault.New(fault.Busy, "%s is unmounted, but processes still use it and can only be cut off by the end of this one: %w", s.dir, err)
	}
	if s.ended(stuck) {
		return nil
	}
	return fault.New(fault.Timeout, "%s is unmounted, but a request in the tree does not end; end this process", s.dir)
}

// takeAway removes the mount from the tree of names, if it is still there.
func (s *Server) takeAway() error {
	at, err := mountsAt(s.dir)
	if err != nil {
		return err
	}
	if len(at) == 0 {
		return nil
	}
	if top := at[len(at)-1]; top.device != s.device {
		for _, m := range at {
			if m.device == s.device {
				return fault.New(fault.Busy, "%s (type %s) is mounted over %s; unmount that first", top.source, top.kind, s.dir)
			}
		}
		return nil
	}
	if unmount(s.dir) == nil {
		return nil
	}
	err = detach(s.dir)
	if at, _ := mountsAt(s.dir); err == nil || len(at) == 0 {
		return nil
	}
	return fault.New(fault.Internal, "%s cannot be unmounted: %w", s.dir, err)
}

// ended waits for the end of serving, at most d.
func (s *Server) ended(d time.Duration) bool {
	select {
	case <-s.done:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.done:
		return true
	case <-timer.C:
		return false
	}
}
