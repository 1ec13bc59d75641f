package fleetwire

import (
	"testing"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
