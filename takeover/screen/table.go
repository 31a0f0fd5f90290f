package screen

// A table numbers values that cells refer to. It grows to twice what is in use,
// and to its maximum at most; when it is full, a sweep forgets what no cell
// has.
type table[K comparable] struct {
	entries []K
	ids     map[K]int
	free    []int
	limit   int // entries at which the next sweep is due
	most    int
	misses  int // values that found the table full since the last sweep
}

const minTable = 4096

func newTable[K comparable](most int) *table[K] {
	return &table[K]{ids: map[K]int{}, limit: minTable, most: most}
}

// id returns the number of k. It calls sweep when the table is full, and
// reports false when everything in it is in use.
func (t *table[K]) id(k K, sweep func()) (int, bool) {
	if id, ok := t.ids[k]; ok {
		return id, true
	}
	if !t.room() {
		// At its maximum, a sweep that freed little must not come with each value.
		if t.misses++; t.limit == t.most && t.misses < t.most/8 {
			return 0, false
		}
		if sweep(); !t.room() {
			return 0, false
		}
	}
	id := len(t.entries)
	if n := len(t.free); n > 0 {
		id = t.free[n-1]
		t.free = t.free[:n-1]
		t.entries[id] = k
	} else {
		t.entries = append(t.entries, k)
	}
	t.ids[k] = id
	return id, true
}

func (t *table[K]) room() bool { return len(t.free) > 0 || len(t.entries) < t.limit }

// keep frees all entries but the used ones.
func (t *table[K]) keep(used []bool) {
	t.misses, t.free = 0, t.free[:0]
	var zero K
	for i, u := range used {
		if u {
			continue
		}
		if id, ok := t.ids[t.entries[i]]; ok && id == i {
			delete(t.ids, t.entries[i])
		}
		t.entries[i] = zero
		t.free = append(t.free, i)
	}
	t.limit = min(max(2*(len(used)-len(t.free)), minTable), t.most)
}
