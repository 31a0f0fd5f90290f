package client

import (
	"context"
	"syscall"
	"time"

	"scvfs/fs/ninep/wire"
)

// visit is one call of the tree: a walk to a node, or to a child of it, and
// requests that are made there.
type visit struct {
	name    string // of the child; empty for the node itself
	keep    bool   // the fid is needed afterwards, if all goes well
	careful bool   // nothing is asked before it is known that it is the same node
	ask     func(fid uint32) []wire.Message

	s           *session
	fid         uint32
	walks, asks []*call
}

// reply returns the answer to request i of those asked.
func (v *visit) reply(i int) wire.Message { return v.asks[i].reply }

// letGo gives up the fid. Nobody waits for that.
func (v *visit) letGo() {
	_ = v.s.send(v.s.clunk(v.fid)) // if it fails there is no fid any more
}

// visit makes a visit. With a server of our own it all goes in one piece,
// because that does what is asked of a fid in the order in which it is asked.
func (n *node) visit(ctx context.Context, v visit) (*visit, error) {
	s, err := n.c.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.slots }()
	v.s, v.fid = s, s.newFid()
	path := n.path
	if v.name != "" {
		path = n.below(v.name)
	}
	if s.extended && !v.careful {
		err = v.atOnce(ctx, n, path)
	} else {
		err = v.stepwise(ctx, n, path)
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// atOnce sends the walk and what is asked in one piece.
func (v *visit) atOnce(ctx context.Context, n *node, path []string) error {
	err := v.s.sendFrom(ctx, func(root uint32) []*call {
		v.walks = v.s.walk(root, v.fid, path)
		v.asks = calls(v.ask(v.fid))
		all := append(append([]*call{}, v.walks...), v.asks...)
		if !v.keep {
			all = append(all, v.s.clunk(v.fid))
		}
		return all
	})
	if err == nil {
		err = v.s.await(ctx, patience, append(append([]*call{}, v.walks...), v.asks...)...)
	}
	if err == nil {
		err = v.arrived(n)
	}
	for _, k := range v.asks {
		if err == nil {
			err = k.err
		}
	}
	if err != nil && v.keep {
		v.letGo()
	}
	return err
}

// stepwise waits for each answer before it asks the next.
func (v *visit) stepwise(ctx context.Context, n *node, path []string) error {
	err := v.s.sendFrom(ctx, func(root uint32) []*call {
		v.walks = v.s.walk(root, v.fid, path)
		return v.walks[:1]
	})
	if err == nil {
		err = v.s.await(ctx, patience, v.walks[0])
	}
	for _, k := range v.walks[1:] {
		if err == nil {
			err = v.s.do(ctx, patience, k)
		}
	}
	if err == nil {
		err = v.arrived(n)
	}
	if err == nil {
		v.asks = calls(v.ask(v.fid))
		for _, k := range v.asks {
			if err = v.s.do(ctx, patience, k); err != nil {
				break
			}
		}
	}
	if err != nil || !v.keep {
		v.letGo()
	}
	return err
}

// walk makes the requests that lead from the root to a path. Of a walk that
// ends early only a server of our own tells why, so with others the last name
// has one to itself.
func (s *session) walk(root, fid uint32, path []string) []*call {
	var all []*call
	from := root
	for {
		names := path[:min(len(path), wire.MaxWalk)]
		if !s.extended && len(names) == len(path) && len(path) > 1 {
			names = path[:len(path)-1]
		}
		path = path[len(names):]
		all = append(all, newCall(&wire.Twalk{Fid: from, NewFid: fid, Names: names}))
		if from = fid; len(path) == 0 {
			return all
		}
	}
}

func calls(messages []wire.Message) []*call {
	all := make([]*call, len(messages))
	for i, m := range messages {
		all[i] = newCall(m)
	}
	return all
}

// arrived looks whether the walk led to the node. It needs the answers.
func (v *visit) arrived(n *node) error {
	var last wire.Qid
	for _, k := range v.walks {
		if k.err != nil {
			return k.err
		}
		names, qids := k.msg.(*wire.Twalk).Names, k.reply.(*wire.Rwalk).Qids
		if len(qids) < len(names) {
			return refuse(syscall.ENOENT, "%s is not there", n.at())
		}
		if len(qids) > 0 {
			last = qids[len(qids)-1]
		}
	}
	if v.name == "" && len(n.path) > 0 && inoOf(last) != n.ino {
		return refuse(syscall.ESTALE, "%s is another by now", n.at())
	}
	return nil
}

// do sends one request and waits for its answer.
func (s *session) do(ctx context.Context, after time.Duration, k *call) error {
	if err := s.send(k); err != nil {
		return err
	}
	if err := s.await(ctx, after, k); err != nil {
		return err
	}
	return k.err
}

// maxVisits is how many visits are under way at a time; a server may have a
// limit of requests.
const maxVisits = 128

// admit waits until there are not too many visits.
func (s *session) admit(ctx context.Context) error {
	given, late := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case s.slots <- struct{}{}:
			return nil
		case <-s.dead:
			return lost(s.c.address, s.why)
		case <-given:
			timer := time.NewTimer(patience)
			defer timer.Stop()
			given, late = nil, timer.C
		case <-late:
			return gaveUp()
		}
	}
}
