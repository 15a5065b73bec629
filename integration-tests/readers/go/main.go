// Reads an Arrow stream from standard input with arrow-go and prints a JSON array a row, numbers as
// text so that none is rounded on its way. With `--ask ADDRESS CERTIFICATE USER PASSWORD BODY` it
// posts the body to a gateway and reads the answer instead.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// bits prints the bits of a float, since no two programs print floats alike.
func bits(value float64) string {
	return fmt.Sprintf("%016x", math.Float64bits(value))
}

func cell(column arrow.Array, row int) any {
	if column.IsNull(row) {
		return nil
	}
	switch values := column.(type) {
	case *array.Boolean:
		return values.Value(row)
	case *array.String:
		return values.Value(row)
	case *array.LargeString:
		return values.Value(row)
	case *array.Binary:
		return hex.EncodeToString(values.Value(row))
	case *array.Int8:
		return fmt.Sprint(values.Value(row))
	case *array.Int16:
		return fmt.Sprint(values.Value(row))
	case *array.Int32:
		return fmt.Sprint(values.Value(row))
	case *array.Int64:
		return fmt.Sprint(values.Value(row))
	case *array.Uint8:
		return fmt.Sprint(values.Value(row))
	case *array.Uint16:
		return fmt.Sprint(values.Value(row))
	case *array.Uint32:
		return fmt.Sprint(values.Value(row))
	case *array.Uint64:
		return fmt.Sprint(values.Value(row))
	case *array.Float32:
		return bits(float64(values.Value(row)))
	case *array.Float64:
		return bits(values.Value(row))
	case *array.Decimal128:
		return values.Value(row).BigInt().String()
	case *array.Date32:
		return fmt.Sprint(int32(values.Value(row)))
	case *array.Timestamp:
		return fmt.Sprint(int64(values.Value(row)))
	case *array.List:
		start, end := values.ValueOffsets(row)
		items := []any{}
		for at := start; at < end; at++ {
			items = append(items, cell(values.ListValues(), int(at)))
		}
		return items
	case *array.Struct:
		fields := []any{}
		for field := range values.NumField() {
			fields = append(fields, cell(values.Field(field), row))
		}
		return fields
	}
	panic(fmt.Sprintf("a column of type %s", column.DataType()))
}

// ask gives the answer to a query in one call.
func ask(address, certificate, user, password, body string) (io.ReadCloser, error) {
	pem, err := os.ReadFile(certificate)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	request, err := http.NewRequest(http.MethodPost, "https://"+address+"/api/v1/query", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(user, password)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/vnd.apache.arrow.stream")
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", answer.Status)
	}
	return answer.Body, nil
}

func read(input io.Reader) error {
	reader, err := ipc.NewReader(bufio.NewReader(input))
	if err != nil {
		return err
	}
	defer reader.Release()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for reader.Next() {
		batch := reader.RecordBatch()
		for row := range int(batch.NumRows()) {
			cells := make([]any, 0, batch.NumCols())
			for _, column := range batch.Columns() {
				cells = append(cells, cell(column, row))
			}
			if err := encoder.Encode(cells); err != nil {
				return err
			}
		}
	}
	return reader.Err()
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if strings.HasPrefix(module.Path, "github.com/apache/arrow-go/") {
			return module.Version
		}
	}
	return "of unknown version"
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println(version())
		return
	}
	var input io.ReadCloser = os.Stdin
	var err error
	if len(os.Args) == 7 && os.Args[1] == "--ask" {
		input, err = ask(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6])
	}
	if err == nil {
		err = read(input)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
