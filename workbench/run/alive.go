package run

// AgentAlive tells whether the process that a run's shim started still lives,
// under its shim or left behind by it. It is false where nothing is known.
func (m *Manager) AgentAlive(run string) bool {
	dir, err := m.open(run)
	if err != nil {
		return false
	}
	defer dir.Close()
	id, ok := readAgent(dir)
	return ok && id.Alive()
}
