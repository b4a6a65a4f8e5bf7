package listing

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
)

// packetRows passes packets to an encoder.
type packetRows struct {
	rows *export.Rows[export.PacketRow]
	row  export.PacketRow
	list *reader.Listing
}

// ExportPackets makes a listing pass its packets to an encoder.
func ExportPackets(l *reader.Listing, to export.Encoder, tree, hex bool) {
	s := &packetRows{rows: export.NewRows(export.Packets, to), list: l}
	s.row.Reading, s.row.Tree, s.row.Hex = &l.Reading, tree, hex
	l.Show, l.Needs = s.show, filter.NeedFlow|filter.NeedFields|filter.NeedEvents|filter.NeedFindings
}

func (s *packetRows) show(r *filter.Record, x *analyze.Record) error {
	s.row.Source = x
	if s.list.From.Named() {
		s.row.File = r.File
	}
	return s.rows.Add(&s.row)
}
