package agent

import "scvfs/ledger/fault"

// LaunchOver makes the launch line of a turn, or of a server that serves a
// conversation's turns, over a transport. Its errors are those of Launch.
func (a *Agent) LaunchOver(transport string, q Request) (Launch, error) {
	switch transport {
	case TransportCLI:
		return a.Launch(q)
	case TransportStream:
		return a.StreamLaunch(q)
	case TransportAppServer:
		return a.AppServerLaunch(q)
	case TransportACP:
		return a.ACPLaunch(q)
	}
	return Launch{}, fault.New(fault.Unsupported, "%s has no launch line for the transport %q", a.Name, transport)
}
