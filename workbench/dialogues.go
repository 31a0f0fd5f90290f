package workbench

import (
	"scvfs/ledger/fault"
	"scvfs/workbench/agent"
	"scvfs/workbench/dialogue"
	"scvfs/workbench/dialogue/acp"
	"scvfs/workbench/dialogue/claude"
	"scvfs/workbench/dialogue/codex"
)

// dialogue makes the dialogue of a transport.
func (o Options) dialogue(transport string, with dialogue.Options) (dialogue.Dialogue, error) {
	if o.Dialogues != nil {
		return o.Dialogues(transport, with)
	}
	switch transport {
	case agent.TransportACP:
		return acp.New(with), nil
	case agent.TransportStream:
		return claude.New(with), nil
	case agent.TransportAppServer:
		return codex.New(with), nil
	}
	return nil, fault.New(fault.Internal, "there is no dialogue for the transport %q", transport)
}
