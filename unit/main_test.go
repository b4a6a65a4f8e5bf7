package unit

import (
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
