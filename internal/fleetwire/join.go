package fleetwire

// The paths of membership on the peer listener. Join alone is answered without a certificate.
const (
	PathJoin  = "/fleet/v1/join"
	PathRenew = "/fleet/v1/renew"
)

// Bounds in bytes of the JSON documents below.
const (
	MaxJoin       = 64 << 10 // a JoinRequest or a RenewRequest
	MaxJoinAnswer = 1 << 20  // a JoinAnswer or a RenewAnswer
)

// JoinRequest asks a voter to make the sender a member. A request that is sent again with the same invite, ID and CSR, because
// the answer was lost, asks for the same join: the sender keeps them until it holds an answer.
type JoinRequest struct {
	InviteID string            `json:"inviteId"`
	Secret   string            `json:"secret"` // the invite's; never logged or stored
	ID       string            `json:"id"`     // node.id of the sender's data directory
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	Peer     string            `json:"peer"`             // host:port of its peer listener, as others reach it
	Gossip   string            `json:"gossip,omitempty"` // host:port, "" if off
	KVEpoch  uint64            `json:"kvEpoch,string"`
	CSR      []byte            `json:"csr"` // PEM, made by pki.NewRequest for ID
}

// JoinAnswer is what a new member gets. RingFile and GossipKey are secrets of the fleet.
type JoinAnswer struct {
	CertPEM   []byte   `json:"cert"`
	CAPEM     []byte   `json:"ca"`
	RingFile  []byte   `json:"ring"` // the file of control/seal's key ring
	GossipKey string   `json:"gossipKey"`
	Members   []Member `json:"members"` // all, so that the plan feed can be found before there is a plan
}

// Member is what a node has to know of another to reach it.
type Member struct {
	ID      string `json:"id"`
	Control bool   `json:"control"`          // it may be a voter
	Edge    bool   `json:"edge"`             // it serves traffic
	Peer    string `json:"peer"`             // host:port
	Gossip  string `json:"gossip,omitempty"` // host:port, "" if off
}

// RenewRequest asks a voter for a new leaf of the caller.
type RenewRequest struct {
	CSR []byte `json:"csr"` // PEM, made by pki.NewRequest for the caller's ID
}

// RenewAnswer carries it.
type RenewAnswer struct {
	CertPEM []byte `json:"cert"`
}
