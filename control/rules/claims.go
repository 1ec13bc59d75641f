package rules

import "strings"

// ClaimClass is a kind of exclusive value.
type ClaimClass string

// The classes of claims.
const (
	ClaimHostname ClaimClass = "hostname" // canonical host name, one holder per tenant
	ClaimEndpoint ClaimClass = "endpoint" // worker UID, one endpoint each
	ClaimAddress  ClaimClass = "address"  // host-assigned name, one holder on the whole node
	ClaimConsumer ClaimClass = "consumer" // queue UID, one consumer each
	ClaimClassOf  ClaimClass = "class"    // worker UID and class name, one namespace each
)

// Claim is one exclusive value that a Resource holds from acceptance until its delete succeeded.
type Claim struct {
	Class ClaimClass `json:"class"`
	Value string     `json:"value"`
}

var claimRules = map[ClaimClass]struct{ rule, pointer, sentence string }{
	ClaimHostname: {"CL-3", "/hostname", "hostname %s is already claimed by %s"},
	ClaimEndpoint: {"CL-6", "/worker", "worker %s already has the endpoint %s"},
	ClaimConsumer: {"CL-8", "/queue", "queue %s already has the consumer %s"},
	ClaimClassOf:  {"attachments", "/className", "class %s is already provided by %s"},
	ClaimAddress:  {"CL-7", "", "address %s is taken by %s"},
}

// Exclusive judges one claim: holder is the UID of the live Resource of the same tenant that has it, "" if none.
func Exclusive(c Claim, holder, self string) *Verdict {
	if holder == "" || holder == self {
		return nil
	}
	row := claimRules[c.Class]
	return Refuse(InvalidArgument, row.rule, row.pointer, []string{holder}, row.sentence, c.Value, holder)
}

// DeadLetters is CL-9: following dead-letter edges from deadLetter must not come back to queue. next gives the dead
// letter queue of a queue's consumer, "" if there is none. Each queue is visited once, so the walk ends on any graph.
func DeadLetters(queue, deadLetter string, next func(queue string) string) *Verdict {
	path := []string{queue}
	seen := map[string]bool{}
	for q := deadLetter; q != "" && !seen[q]; q = next(q) {
		path = append(path, q)
		if q == queue {
			return Refuse(InvalidArgument, "CL-9", "/deadLetterQueue", path, "dead letters would go round: %s", strings.Join(path, " to "))
		}
		seen[q] = true
	}
	return nil
}
