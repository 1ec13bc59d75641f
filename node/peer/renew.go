package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
)

const (
	renewLook  = time.Hour // at least this often the leaf's end is looked at, whatever the clocks do
	renewFirst = 30 * time.Second
	renewMost  = time.Hour
	renewTime  = 15 * time.Second // one voter's time to answer
)

// request is a renewal whose answer is not kept yet.
type request struct {
	key []byte // a secret, in memory alone
	csr []byte
}

// dueIn returns how long until less than a third of the leaf's life is left, 0 if that is so.
func (p *Peers) dueIn(now time.Time) time.Duration {
	leaf := p.leaf.Load().Leaf
	return max(0, leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore)/3).Sub(now))
}

// renewals keeps the leaf fresh until ctx is done.
func (p *Peers) renewals(ctx context.Context) {
	retry := renewFirst
	for {
		wait := min(p.dueIn(time.Now()), renewLook)
		if wait == 0 {
			if p.Left() != "" {
				return // its certificate is good for nothing any more
			}
			err := p.Renew(ctx)
			if err == nil {
				retry = renewFirst
				continue
			}
			if ctx.Err() == nil {
				p.opt.Log.Warn("cannot renew this member's certificate", "left", time.Until(p.NotAfter()).Round(time.Second), "err", err)
			}
			wait = retry/2 + rand.N(retry/2)
			retry = min(2*retry, renewMost)
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// Renew gets a new leaf with a new key from a voter, keeps it in place of the old one, and shows it in every connection from
// then on; open ones stay. Run calls it in time. It is Unavailable, with all reasons, if no voter gives one. The key is kept nowhere
// before its leaf is there, and then both are one file: a crash leaves the old pair or the new one. Until then every repetition asks with the
// same request.
func (p *Peers) Renew(ctx context.Context) error {
	p.renewing.Lock()
	defer p.renewing.Unlock()
	if p.asked == nil {
		key, csr, err := pki.NewRequest(p.opt.Node)
		if err != nil {
			return err
		}
		p.asked = &request{key, csr}
	}
	leaf, err := p.askLeaf(ctx, p.asked.csr)
	if err != nil {
		return err
	}
	cert, err := pair(p.root, p.opt.Node, leaf, p.asked.key)
	if err != nil {
		return err
	}
	if !cert.Leaf.NotAfter.After(p.NotAfter()) {
		return fault.New(fault.Conflict, "peer.Renew", "the new certificate does not end later than the old one: compare the nodes' clocks")
	}
	if err := keep(p.opt.write, p.opt.Dir, p.opt.Node, p.root, leaf, p.asked.key); err != nil {
		return err
	}
	p.asked = nil
	p.leaf.Store(cert)
	p.client.CloseIdleConnections()
	p.opt.Log.Info("renewed this member's certificate", "until", cert.Leaf.NotAfter)
	return nil
}

// askLeaf asks this member if it is a voter, then the others in random order.
func (p *Peers) askLeaf(ctx context.Context, csr []byte) ([]byte, error) {
	var errs []error
	if p.opt.Renew != nil {
		leaf, err := p.opt.Renew(ctx, p.opt.Node, csr)
		if err == nil {
			return leaf, nil
		}
		errs = append(errs, err)
	}
	voters := slices.Clone(p.opt.Voters())
	rand.Shuffle(len(voters), func(i, j int) { voters[i], voters[j] = voters[j], voters[i] })
	for _, v := range voters {
		if v == p.opt.Node {
			continue
		}
		leaf, err := p.askVoter(ctx, v, csr)
		if err == nil {
			return leaf, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		errs = append(errs, errors.New("no voter is known"))
	}
	return nil, fault.Wrap(fault.Unavailable, "peer.Renew", errors.Join(errs...))
}

func (p *Peers) askVoter(ctx context.Context, voter string, csr []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	var answer fleetwire.RenewAnswer
	err := post(ctx, p.client, "https://"+pki.Host(voter)+fleetwire.PathRenew, fleetwire.RenewRequest{CSR: csr}, &answer)
	return answer.CertPEM, err
}

// post sends a document and reads the one that answers it.
func post(ctx context.Context, client *http.Client, url string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fault.Wrap(fault.Internal, "peer.post", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fault.Wrap(fault.Invalid, "peer.post", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return postFault(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fleetwire.ReadError("peer.post", resp.StatusCode, resp.Body)
	}
	return fleetwire.ReadJSON(resp.Body, fleetwire.MaxJoinAnswer, out)
}

// postFault gives a failed exchange its code; what dial said stays.
func postFault(err error) error {
	if fault.CodeOf(err) != fault.Internal {
		return err
	}
	return fault.Wrap(fault.Unavailable, "peer.post", err)
}
