package reader

import "errors"

// errNoMetrics refuses --metrics: a page in a browser serves nothing.
var errNoMetrics = errors.New("--metrics: not in a browser")

// metricsAccess is nothing in a browser, which serves no metrics.
type metricsAccess struct{}

func listenAddress(string) (string, error) { return "", errNoMetrics }

func (*WatchFlags) checkAccess() error { return nil }

func (*WatchFlags) access(func(string)) (*metricsAccess, error) { return &metricsAccess{}, nil }

func (*Running) serve() error { return errNoMetrics }
