package workbench

import "sync"

// inbox is what other goroutines want of a server's own: functions that it
// calls in the order they came. Its lock is a leaf.
type inbox struct {
	mu   sync.Mutex
	todo []func()
	shut bool
	wake chan struct{} // holds one when there may be something to do
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// post leaves f, and never waits. It is false when nobody will call it.
func (b *inbox) post(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut {
		return false
	}
	b.todo = append(b.todo, f)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// take returns what came, oldest first.
func (b *inbox) take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	todo := b.todo
	b.todo = nil
	return todo
}

// close refuses what comes from now on, and returns what came before.
func (b *inbox) close() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
	todo := b.todo
	b.todo = nil
	return todo
}
