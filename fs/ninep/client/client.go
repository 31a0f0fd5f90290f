package client

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"scvfs/fs"
	"scvfs/fs/ninep/wire"
	"scvfs/ledger/fault"
)

const (
	defaultMessage = 512 << 10
	defaultTimeout = 10 * time.Second
)

// Options are what a client can be told. The zero value is good.
type Options struct {
	// Log is told when the server goes and when it is back. Nil discards it.
	Log *slog.Logger
	// MaxMessage is the largest frame in bytes that is asked for; 0 is 512 KiB.
	MaxMessage uint32
	// Timeout is how long a server may take to take a connection and to greet;
	// 0 is 10 seconds.
	Timeout time.Duration
	// Plain asks for 9P2000.L as it is, also of a server of our own.
	Plain bool
}

// Client is a tree that a 9P server has.
type Client struct {
	network, address string
	opt              Options
	root             *dir

	mu      sync.Mutex
	live    *session
	dialing *dialing
	down    bool // the log has it
	closed  bool
}

// dialing is one attempt to connect, which all who need it wait for.
type dialing struct {
	done chan struct{}
	s    *session
	err  error
}

// ParseAddress splits the address of a server: the path of a unix socket, which
// begins with / or ., unix:PATH, tcp:HOST:PORT, or HOST:PORT. The host of a TCP
// address must be this machine: 9P knows no passwords. Errors are
// fault.Invalid, and fault.Denied for another machine.
func ParseAddress(s string) (network, address string, err error) {
	rest, isTCP := strings.CutPrefix(s, "tcp:")
	path, isUnix := strings.CutPrefix(s, "unix:")
	switch {
	case isUnix && path != "":
		return "unix", path, nil
	case !isTCP && !isUnix && strings.ContainsAny(s, "/"):
		return "unix", s, nil
	}
	host, port, splitErr := net.SplitHostPort(rest)
	if isUnix || splitErr != nil || port == "" {
		return "", "", fault.New(fault.Invalid, "%q is no address of a 9P server; write the path of a socket, such as ./scvfs.sock, or HOST:PORT", s)
	}
	at, err := net.ResolveTCPAddr("tcp", rest)
	if err != nil {
		return "", "", fault.New(fault.Invalid, "%q is no TCP address: %w; write HOST:PORT, such as 127.0.0.1:5640", s, err)
	}
	if !at.IP.IsLoopback() {
		return "", "", fault.New(fault.Denied, "%s is another machine, and 9P knows no passwords; forward its socket with ssh -L and name that", host)
	}
	return "tcp", at.String(), nil
}

// Dial connects to the server at an address (see ParseAddress for its form and
// errors). It fails with a Refusal where nobody answers, and with
// fault.Unsupported where the server speaks no 9P2000.L.
func Dial(ctx context.Context, address string, opt Options) (*Client, error) {
	network, at, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.MaxMessage == 0 {
		opt.MaxMessage = defaultMessage
	}
	if opt.Timeout <= 0 {
		opt.Timeout = defaultTimeout
	}
	c := &Client{network: network, address: at, opt: opt}
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	c.root = &dir{node{c: c, ino: s.rootIno}}
	return c, nil
}

// Root returns the root of the tree. It stays the same whatever becomes of the
// connection.
func (c *Client) Root() fs.Dir { return c.root }

// Close ends the connection, after what was sent has been answered or a moment
// has passed. All calls fail from then on.
func (c *Client) Close() {
	c.mu.Lock()
	s := c.live
	c.closed, c.live = true, nil
	c.mu.Unlock()
	if s != nil {
		s.close()
	}
}

// session returns the live connection, or makes one.
func (c *Client) session(ctx context.Context) (*session, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, refuse(wireGone, "this client of %s is closed", c.address)
	}
	if s := c.live; s != nil && s.alive() {
		c.mu.Unlock()
		return s, nil
	}
	d := c.dialing
	if d == nil {
		d = &dialing{done: make(chan struct{})}
		c.dialing = d
		go c.connect(d)
	}
	c.mu.Unlock()
	if !patiently(ctx, d.done, patience) {
		return nil, gaveUp()
	}
	return d.s, d.err
}

// connect makes one attempt.
func (c *Client) connect(d *dialing) {
	ctx, cancel := context.WithTimeout(context.Background(), c.opt.Timeout)
	defer cancel()
	nc, err := (&net.Dialer{}).DialContext(ctx, c.network, c.address)
	if err == nil {
		d.s, err = newSession(c, nc, time.Now().Add(c.opt.Timeout))
	}
	if err != nil && fault.Is(err, fault.Internal) {
		err = unreachable(c.address, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialing = nil
	switch {
	case err != nil:
		d.err = err
		c.tell(err)
	case c.closed:
		go d.s.close()
		d.s, d.err = nil, refuse(wireGone, "this client of %s is closed", c.address)
	default:
		c.live = d.s
		if c.down {
			c.down = false
			c.opt.Log.Info("the 9P server answers again", "at", c.address)
		}
	}
	close(d.done)
}

// tell logs that the server is gone, once. It needs mu.
func (c *Client) tell(err error) {
	if !c.down && !c.closed {
		c.down = true
		c.opt.Log.Warn("the 9P server is gone; calls fail until it answers again", "at", c.address, "err", err)
	}
}

// gone is told by a session that it has ended.
func (c *Client) gone(s *session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == s {
		c.live = nil
		c.tell(err)
	}
}

// patiently waits until done is closed; false when it is not some time after
// ctx has ended.
func patiently(ctx context.Context, done <-chan struct{}, patience time.Duration) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// dialect is what is spoken, in the form of its frames.
const dialect = wire.Linux
