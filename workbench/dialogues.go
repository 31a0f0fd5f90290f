package workbench

import (
	"scvfs/ledger/fault"
	"scvfs/workbench/dialogue"
)

// dialogue makes the dialogue of a transport.
func (o Options) dialogue(transport string, with dialogue.Options) (dialogue.Dialogue, error) {
	if o.Dialogues != nil {
		return o.Dialogues(transport, with)
	}
	return nil, fault.New(fault.Internal, "there is no dialogue for the transport %s", transport)
}
