package state

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"

	"edged/control/rules"
)

// TokenHash returns what is kept of a token's secret.
func TokenHash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Authenticate returns who a secret stands for. It fails closed: anything unknown is nobody.
func (s *State) Authenticate(secret string) (Actor, bool) {
	hash := TokenHash(secret)
	s.mu.RLock()
	defer s.mu.RUnlock()
	id, ok := s.hashes.Get(string(hash)) // looking up a digest tells nothing about the secret
	if !ok {
		return Actor{}, false
	}
	t, ok := s.tokens.Get(id)
	if !ok || subtle.ConstantTimeCompare(t.Hash, hash) != 1 {
		return Actor{}, false
	}
	return Actor{Token: t.ID, Tenant: t.Tenant, Principal: t.Principal, Role: t.Role, Spaces: t.Spaces}, true
}

// Tokens returns all tokens in ascending order of id.
func (s *State) Tokens() []*Token {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tokens.Values()
}

func (s *State) addToken(t *Token) {
	if _, taken := s.tokens.Get(t.ID); taken {
		return
	}
	s.tokens.Set(t.ID, t)
	s.hashes.Set(string(t.Hash), t.ID)
}

func (s *State) removeToken(t *Token) {
	if old, ok := s.tokens.Delete(t.ID); ok {
		s.hashes.Delete(string(old.Hash))
	}
}

func (s *State) useTokens(used map[string]int64) {
	for id, at := range used { // each stands for itself: their order does not matter
		if old, ok := s.tokens.Get(id); ok && at > old.UsedAt {
			t := *old
			t.UsedAt = at
			s.tokens.Set(id, &t)
		}
	}
}

// Token returns a token by id, nil if there is none.
func (s *State) Token(id string) *Token {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, _ := s.tokens.Get(id)
	return t
}

// May says whether the actor's role and Spaces allow something inside its own tenant; need is Reader or Editor.
func (a *Actor) May(space string, need Role) *rules.Verdict {
	if len(a.Spaces) > 0 && !slices.Contains(a.Spaces, space) {
		return rules.Refuse(rules.PermissionDenied, "host-api §4", "", nil, "this principal has no access to the Space")
	}
	if need != Reader && a.Role != Editor && a.Role != Operator {
		return rules.Refuse(rules.PermissionDenied, "host-api §4", "", nil, "this principal may only read")
	}
	return nil
}

func notFound(what string) *rules.Verdict {
	return &rules.Verdict{Seed: rules.ResourceNotFound, Sentence: "no such " + what}
}

// find returns a live Resource of the actor's tenant, or the verdict that says why not: Gone while a tombstone is kept.
func (s *State) find(a *Actor, uid string, need Role) (*Resource, *rules.Verdict) {
	if r := s.get(uid); r != nil && r.Tenant == a.Tenant {
		return r, a.May(r.Space, need)
	}
	if t, ok := s.tombs.Get(uid); ok && t.Tenant == a.Tenant {
		if v := a.May(t.Space, need); v != nil {
			return nil, v
		}
		return nil, &rules.Verdict{Seed: rules.Gone, Sentence: "the Resource was deleted"}
	}
	return nil, notFound("Resource")
}
