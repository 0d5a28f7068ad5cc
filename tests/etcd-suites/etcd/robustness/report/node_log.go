package report

// The log of Baton's node, read as wal.go reads etcd's. Formats: node/wal/src/segment.rs and record.rs, node/proto/entry.proto.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	segmentHeader = 40
	recordHead    = 20
	entryID       = 24 // term, who leads, index

	recordEntry    = 1
	recordTruncate = 2
)

// isNodeLog: etcd has no file of this name.
func isNodeLog(dataDir string) bool {
	_, err := os.Stat(filepath.Join(dataDir, "identity"))
	return err == nil
}

func requestsInNodeLog(dataDir string) ([]model.EtcdRequest, error) {
	payloads, err := entriesOf(dataDir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dataDir, err)
	}
	requests := []model.EtcdRequest{}
	applied := sessions{}
	for i, payload := range payloads {
		request, err := requestOf(payload, applied)
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", dataDir, i, err)
		}
		if request != nil {
			requests = append(requests, *request)
		}
	}
	return requests, nil
}

// entriesOf returns the payload of every entry that stands in the log, from the first, which has the index 0. What a snapshot
// stands for is still there, as long as its file is; a member that was sent one has a gap.
func entriesOf(dataDir string) ([][]byte, error) {
	segments, err := filepath.Glob(filepath.Join(dataDir, "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		return nil, errors.Join(err, errors.New("no segments"))
	}
	sort.Strings(segments)
	var payloads [][]byte
	for _, segment := range segments {
		data, err := os.ReadFile(segment)
		if err != nil {
			return nil, err
		}
		for at := segmentHeader; at+recordHead <= len(data); {
			length, kind := int(binary.LittleEndian.Uint32(data[at+8:])), binary.LittleEndian.Uint32(data[at+16:])
			if kind == 0 || at+recordHead+length > len(data) {
				break // what is left was never written whole
			}
			body := data[at+recordHead : at+recordHead+length]
			switch kind {
			case recordEntry:
				index := binary.LittleEndian.Uint64(body[entryID-8:])
				if index > uint64(len(payloads)) {
					return nil, fmt.Errorf("entry %d comes where %d should", index, len(payloads))
				}
				payloads = append(payloads[:index], body[entryID:])
			case recordTruncate:
				payloads = payloads[:min(uint64(len(payloads)), binary.LittleEndian.Uint64(body))]
			}
			at += (recordHead + length + 3) &^ 3
		}
	}
	return payloads, nil
}

// requestOf is the client's request in an entry, or nil: it is none, or one that is not applied.
func requestOf(payload []byte, applied sessions) (*model.EtcdRequest, error) {
	numbers, nested, err := fieldsOf(payload)
	if err != nil {
		return nil, err
	}
	const member, starts, number, settled, entry = 1, 2, 3, 4, 5
	proposal, ok := nested[2]
	if !ok {
		return nil, nil
	}
	if numbers, nested, err = fieldsOf(proposal); err != nil {
		return nil, err
	}
	if !applied.admit(numbers[member], numbers[starts], numbers[number], numbers[settled]) {
		return nil, nil
	}
	_, what, err := fieldsOf(nested[entry])
	if err != nil {
		return nil, err
	}
	raft := &pb.InternalRaftRequest{}
	for field, bytes := range what {
		switch field {
		case 10:
			raft.Put = &pb.PutRequest{}
			err = raft.Put.Unmarshal(bytes)
		case 11:
			raft.DeleteRange = &pb.DeleteRangeRequest{}
			err = raft.DeleteRange.Unmarshal(bytes)
		case 12:
			raft.Txn = &pb.TxnRequest{}
			err = raft.Txn.Unmarshal(bytes)
		case 13:
			raft.Compaction = &pb.CompactionRequest{}
			err = raft.Compaction.Unmarshal(bytes)
		case 14:
			raft.LeaseGrant = &pb.LeaseGrantRequest{}
			err = raft.LeaseGrant.Unmarshal(bytes)
		case 15:
			raft.LeaseRevoke = &pb.LeaseRevokeRequest{}
			err = raft.LeaseRevoke.Unmarshal(bytes)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		data, err := raft.Marshal()
		if err != nil {
			return nil, err
		}
		return parseEntryNormal(raftpb.Entry{Data: data})
	}
	return nil, nil
}

// sessions says which proposals count (node/src/state/sessions.rs): a member may propose one twice, and one that it has given up,
// as its client was told that its fate is unknown, is not applied when it comes after all.
type sessions map[uint64]*session

type session struct {
	starts, settled uint64
	applied         map[uint64]bool
}

func (s sessions) admit(member, starts, number, settled uint64) bool {
	its := s[member]
	if its == nil || its.starts < starts {
		its = &session{starts: starts, applied: map[uint64]bool{}}
		s[member] = its
	}
	if starts < its.starts {
		return false
	}
	counts := number >= its.settled && !its.applied[number]
	its.applied[number] = true
	its.settled = max(its.settled, settled)
	return counts
}

// fieldsOf are a message's numbers and its nested messages or bytes, by field; the last of each.
func fieldsOf(message []byte) (map[protowire.Number]uint64, map[protowire.Number][]byte, error) {
	numbers, nested := map[protowire.Number]uint64{}, map[protowire.Number][]byte{}
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, nil, protowire.ParseError(n)
		}
		message = message[n:]
		switch kind {
		case protowire.VarintType:
			numbers[field], n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			nested[field], n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return nil, nil, protowire.ParseError(n)
		}
		message = message[n:]
	}
	return numbers, nested, nil
}
