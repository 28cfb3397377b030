// Strategic-merge applies patches with the code that API servers apply them with, so that ours can be compared with it.
//
// Without arguments it reads objects and patches from standard input, a JSON value {"kind", "original", "patch"} on
// each line, and answers each with a line: {"result"} or {"error"}.
// With the argument "types" it prints what the API types say about patches, in the form that the engine embeds.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type question struct {
	Kind     string          `json:"kind"`
	Original json.RawMessage `json:"original"`
	Patch    json.RawMessage `json:"patch"`
}

type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func main() {
	run := answerAll
	if len(os.Args) == 2 && os.Args[1] == "types" {
		run = printTypes
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "strategic-merge:", err)
		os.Exit(1)
	}
}

func answerAll() error {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for in.More() {
		var asked question
		if err := in.Decode(&asked); err != nil {
			return err
		}
		if err := encoder.Encode(apply(asked)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// apply takes a panic for an error: the real code compares values that Go cannot compare.
func apply(asked question) (given answer) {
	defer func() {
		if reason := recover(); reason != nil {
			given = answer{Error: fmt.Sprint("panic: ", reason)}
		}
	}()
	object, known := kinds[asked.Kind]
	if !known {
		return answer{Error: fmt.Sprintf("there is no kind %q", asked.Kind)}
	}
	result, err := strategicpatch.StrategicMergePatch(asked.Original, asked.Patch, object)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Result: result}
}
