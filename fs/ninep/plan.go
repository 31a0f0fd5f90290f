package ninep

import (
	"syscall"

	"scvfs/fs/ninep/wire"
)

// plan decides what is to be done for a message. It is the reader's, so it
// calls nothing of the tree. Fids are found here, in the order of arrival.
func (s *session) plan(m wire.Message) (plan, error) {
	switch m := m.(type) {
	case *wire.Tclunk:
		return s.planClunk(m)
	case *wire.Tremove:
		return s.planRemove(m)
	}
	if s.crowded() {
		return plan{}, errCrowded
	}
	switch m := m.(type) {
	case *wire.Tauth:
		return plan{}, refused(syscall.ENOENT) // how a client hears that there is no authentication
	case *wire.Tattach:
		return s.planAttach(m)
	case *wire.Twalk:
		return s.planWalk(m)
	case *wire.Tread:
		return s.on(m.Fid, func(r *request) (answer, error) { return r.read(m) })
	case *wire.Twrite:
		return s.aloneOn(m.Fid, func(r *request) (answer, error) { return r.write(m) })
	}
	if s.dialect == wire.Plain {
		return s.planPlain(m)
	}
	return s.planLinux(m)
}

// on plans work on a fid.
func (s *session) on(num uint32, work func(*request) (answer, error)) (plan, error) {
	f, err := s.find(num)
	return plan{fid: f, work: work}, err
}

// aloneOn plans work on a fid that later work waits for.
func (s *session) aloneOn(num uint32, work func(*request) (answer, error)) (plan, error) {
	f, err := s.find(num)
	return plan{fid: f, alone: true, work: work}, err
}

// known plans an answer that needs no work, if the fids are some.
func (s *session) known(m wire.Message, fids ...uint32) (plan, error) {
	for _, num := range fids {
		if _, err := s.find(num); err != nil {
			return plan{}, err
		}
	}
	return plan{answer: m}, nil
}

// refusedOn plans a refusal, if the fids are some.
func (s *session) refusedOn(errno syscall.Errno, fids ...uint32) (plan, error) {
	p, err := s.known(nil, fids...)
	if err == nil {
		err = refused(errno)
	}
	return p, err
}

func (s *session) planAttach(m *wire.Tattach) (plan, error) {
	switch {
	case m.AFid != wire.NoFid:
		return plan{}, refused(syscall.EBADF)
	case m.AName != "" && m.AName != "/":
		return plan{}, refused(syscall.ENOENT)
	}
	f, err := s.make(m.Fid, s.callerFor(m))
	return plan{made: f, work: (*request).attach}, err
}

func (s *session) planWalk(m *wire.Twalk) (plan, error) {
	f, err := s.find(m.Fid)
	if err != nil {
		return plan{}, err
	}
	work := func(r *request) (answer, error) { return r.walk(m) }
	if m.NewFid == m.Fid {
		return plan{fid: f, alone: true, work: work}, nil
	}
	made, err := s.make(m.NewFid, f.caller)
	return plan{fid: f, made: made, work: work}, err
}

// planClunk forgets the fid at once: what comes from now on does not find it.
// Where nothing is open and nothing is under way, that is all.
func (s *session) planClunk(m *wire.Tclunk) (plan, error) {
	f, err := s.find(m.Fid)
	if err != nil {
		return plan{}, err
	}
	s.forget(f)
	if f.bare() {
		return plan{answer: &wire.Rclunk{}}, f.discard(clunked)
	}
	return plan{always: true, work: func(*request) (answer, error) {
		if err := f.discard(clunked); err != nil {
			return answer{}, err
		}
		return say(&wire.Rclunk{})
	}}, nil
}

func (s *session) planRemove(m *wire.Tremove) (plan, error) {
	f, err := s.find(m.Fid)
	if err != nil {
		return plan{}, err
	}
	s.forget(f)
	return plan{always: true, work: func(r *request) (answer, error) { return r.remove(f) }}, nil
}

// planPlain is for what only 9P2000 has.
func (s *session) planPlain(m wire.Message) (plan, error) {
	switch m := m.(type) {
	case *wire.Topen:
		return s.aloneOn(m.Fid, func(r *request) (answer, error) { return r.openPlain(m) })
	case *wire.Tcreate:
		return s.aloneOn(m.Fid, func(r *request) (answer, error) { return r.createPlain(m) })
	case *wire.Tstat:
		return s.on(m.Fid, (*request).stat)
	case *wire.Twstat:
		return s.on(m.Fid, func(r *request) (answer, error) { return r.wstat(m) })
	}
	return plan{}, refused(syscall.EOPNOTSUPP)
}

// planLinux is for what only 9P2000.L has.
func (s *session) planLinux(m wire.Message) (plan, error) {
	switch m := m.(type) {
	case *wire.Tlopen:
		return s.aloneOn(m.Fid, func(r *request) (answer, error) { return r.openLinux(m) })
	case *wire.Tgetattr:
		return s.on(m.Fid, (*request).getattr)
	case *wire.Tsetattr:
		return s.on(m.Fid, func(r *request) (answer, error) { return r.setattr(m) })
	case *wire.Treadlink:
		return s.on(m.Fid, (*request).readlink)
	case *wire.Treaddir:
		return s.on(m.Fid, func(r *request) (answer, error) { return r.readdir(m) })
	case *wire.Tmkdir:
		return s.on(m.DFid, func(r *request) (answer, error) { return r.mkdir(m) })
	case *wire.Tunlinkat:
		return s.on(m.DFid, func(r *request) (answer, error) { return r.unlinkat(m) })
	case *wire.Tshut:
		if !s.extended {
			break
		}
		return s.aloneOn(m.Fid, func(r *request) (answer, error) { return r.close(m) })
	case *wire.Tstatfs:
		return s.known(statfs(), m.Fid)
	case *wire.Tfsync:
		// What a write did is done when it is answered.
		return s.on(m.Fid, func(*request) (answer, error) { return say(&wire.Rfsync{}) })
	}
	return s.planRefused(m)
}

// planRefused is for what no tree offers. Locks are refused too: to say yes
// and lock nothing would be worse.
func (s *session) planRefused(m wire.Message) (plan, error) {
	switch m := m.(type) {
	case *wire.Tlcreate:
		return s.refusedOn(changeRefused(m.Name), m.Fid)
	case *wire.Tsymlink:
		return s.refusedOn(changeRefused(m.Name), m.Fid)
	case *wire.Tmknod:
		return s.refusedOn(changeRefused(m.Name), m.DFid)
	case *wire.Tlink:
		return s.refusedOn(changeRefused(m.Name), m.DFid, m.Fid)
	case *wire.Trename:
		return s.refusedOn(changeRefused(m.Name), m.Fid, m.DFid)
	case *wire.Trenameat:
		return s.refusedOn(changeRefused(m.NewName), m.OldDirFid, m.NewDirFid)
	case *wire.Txattrwalk:
		return s.refusedOn(syscall.EOPNOTSUPP, m.Fid)
	case *wire.Txattrcreate:
		return s.refusedOn(syscall.EOPNOTSUPP, m.Fid)
	case *wire.Tlock:
		return s.refusedOn(syscall.EOPNOTSUPP, m.Fid)
	case *wire.Tgetlock:
		return s.refusedOn(syscall.EOPNOTSUPP, m.Fid)
	}
	return plan{}, refused(syscall.EOPNOTSUPP) // an answer, or nothing that is known
}
