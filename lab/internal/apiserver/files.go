// Uploads: the field "file" of a multipart form is stored under the hash of its
// content, so that a name from a client never becomes a path.

package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/gin-gonic/gin"
)

type fileAPI struct {
	dir     string
	maxSize int64
	log     *slog.Logger
}

// formOverhead is the number of bytes that the boundaries and headers of a form
// may have in addition to the file.
const formOverhead = 64 << 10

var fileIDForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func openFiles(dir string, maxSize int64, log *slog.Logger) (fileAPI, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fileAPI{}, fmt.Errorf("server.upload-dir: %w", err)
		}
	}
	return fileAPI{dir, maxSize, log}, nil
}

func (f fileAPI) enabled(c *gin.Context) {
	if f.dir == "" {
		abort(c, http.StatusServiceUnavailable, "this server was started without server.upload-dir")
		return
	}
	c.Next()
}

func (f fileAPI) upload(c *gin.Context) {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, f.maxSize+formOverhead)
	form, err := c.Request.MultipartReader()
	if err != nil {
		abort(c, http.StatusBadRequest, "a multipart form with the field \"file\" is wanted")
		return
	}
	for {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			abort(c, http.StatusBadRequest, "the form has no field \"file\"")
			return
		case err != nil:
			f.fail(c, err)
			return
		case part.FormName() != "file":
			continue
		}
		id, size, err := f.keep(part)
		if err != nil {
			f.fail(c, err)
			return
		}
		c.Header("Location", "/v1/files/"+id)
		c.JSON(http.StatusCreated, gin.H{"id": id, "name": part.FileName(), "size": size, "sha256": id})
		return
	}
}

var errTooLarge = errors.New("the file is too large")

// keep streams a file to disk. The file appears under its id only when it is
// complete.
func (f fileAPI) keep(from io.Reader) (id string, size int64, err error) {
	partial, err := os.CreateTemp(f.dir, "partial-*")
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(partial.Name()) // fails after the rename, which is intended
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(partial, hash), io.LimitReader(from, f.maxSize+1))
	if err = errors.Join(err, partial.Close()); err != nil {
		return "", 0, err
	}
	if size > f.maxSize {
		return "", 0, errTooLarge
	}
	id = hex.EncodeToString(hash.Sum(nil))
	return id, size, os.Rename(partial.Name(), filepath.Join(f.dir, id))
}

func (f fileAPI) fail(c *gin.Context, err error) {
	var tooLong *http.MaxBytesError
	switch {
	case errors.Is(err, errTooLarge), errors.As(err, &tooLong):
		abort(c, http.StatusRequestEntityTooLarge, fmt.Sprintf("a file has at most %d bytes", f.maxSize))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.log.Error("no disk room for uploads", "dir", f.dir)
		abort(c, http.StatusInsufficientStorage, "the server has no disk room left")
	case errors.Is(err, io.ErrUnexpectedEOF):
		abort(c, http.StatusBadRequest, "the form ends before its closing boundary")
	default:
		f.log.Warn("upload", "cause", err.Error())
		abort(c, http.StatusBadRequest, "the form cannot be read")
	}
}

func (f fileAPI) download(c *gin.Context) {
	id := c.Param("id")
	if !fileIDForm.MatchString(id) {
		abort(c, http.StatusBadRequest, "a file's id is the SHA-256 of its content in hex")
		return
	}
	file, err := os.Open(filepath.Join(f.dir, id))
	if errors.Is(err, os.ErrNotExist) {
		abort(c, http.StatusNotFound, "there is no such file")
		return
	}
	if err != nil {
		f.log.Error("download", "cause", err.Error())
		abort(c, http.StatusInternalServerError, "the file cannot be read")
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		abort(c, http.StatusInternalServerError, "the file cannot be read")
		return
	}
	c.Header("Content-Type", "application/octet-stream")
	http.ServeContent(c.Writer, c.Request, "", info.ModTime(), file)
}
