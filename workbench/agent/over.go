package agent

import "scvfs/ledger/fault"

// LaunchOver makes the launch line of a turn, or of a server that serves a
// conversation's turns, over a transport. Its errors are those of Launch.
func (a *Agent) LaunchOver(transport string, q Request) (Launch, error) {
	if transport == TransportCLI {
		return a.Launch(q)
	}
	if transport == TransportACP {
		return Launch{Argv: append([]string{q.Path}, a.Args...), Stdin: StdinFIFO}, nil
	}
	if transport == TransportStream {
		return a.StreamLaunch(q)
	}
	if transport == TransportAppServer {
		return a.AppServerLaunch(q)
	}
	return Launch{}, fault.New(fault.Unsupported, "%s has no launch line for the transport %s", a.Name, transport)
}
