package facade

import "edged/sandbox/engine"

// Table returns the host functions of the bindings. Stored images hold positions in it: append only, behind the last.
func Table() []engine.Host {
	return []engine.Host{
		{Name: "kvGet", Argc: 3, Fn: hostKVGet},
		{Name: "kvPut", Argc: 5, Fn: hostKVPut},
		{Name: "kvDelete", Argc: 2, Fn: hostKVDelete},
		{Name: "kvList", Argc: 4, Fn: hostKVList},
		{Name: "settle", Argc: 3, Fn: hostSettle},
		{Name: "queueSend", Argc: 3, Fn: hostQueueSend},
		{Name: "sqlRun", Argc: 4, Fn: hostSQLRun},
	}
}
