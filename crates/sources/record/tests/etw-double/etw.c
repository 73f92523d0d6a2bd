// A double of the functions that control Event Tracing for Windows. It refuses what Microsoft's documentation says that Windows
// refuses, keeps sessions in a file so that they outlive a killed program, and lets log files grow from a given trace.
//
//   ETWHY_DOUBLE_STATE   file of the sessions (required)
//   ETWHY_DOUBLE_LOG     file that every call is appended to
//   ETWHY_DOUBLE_KERNEL  trace that log files of kernel sessions grow from, a buffer at each question, the rest at the end
//   ETWHY_DOUBLE_USER    the same of other sessions
//   ETWHY_DOUBLE_FAIL    calls that fail: StartTraceW=1450,EnableTraceEx2=87
//
// Built as a library it is what ETWHY_ETW_DLL names; built with -DTOOL it is the other programs of the machine:
// take NAME | end NAME | lose NAME COUNT | flags NAME HEX | list | sleep MILLISECONDS, and Windows itself: boot, which begins the sessions of
// the registry's keys.
//
// Sources: https://learn.microsoft.com/en-us/windows/win32/api/evntrace/ (StartTraceW, ControlTraceW, EnableTraceEx2,
// TraceSetInformation, QueryAllTracesW), https://learn.microsoft.com/en-us/windows/win32/etw/event-trace-properties,
// https://learn.microsoft.com/en-us/windows/win32/etw/logging-mode-constants,
// https://learn.microsoft.com/en-us/windows/win32/etw/configuring-and-starting-an-autologger-session,
// https://learn.microsoft.com/en-us/windows/win32/etw/configuring-and-starting-the-global-logger-session.
#define _WIN32_WINNT 0x0A00
#define INITGUID
#include <windows.h>
#include <evntrace.h>
#include <evntcons.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

// Sizes and offsets that crates/foundation/os/src/windows/etw.rs asserts of its structures.
#define SAME(what, value) _Static_assert((what) == (value), #what)
SAME(sizeof(WNODE_HEADER), 48);
SAME(sizeof(EVENT_TRACE_PROPERTIES), 120);
SAME(offsetof(EVENT_TRACE_PROPERTIES, EventsLost), 88);
SAME(offsetof(EVENT_TRACE_PROPERTIES, LogFileNameOffset), 112);
SAME(offsetof(EVENT_TRACE_PROPERTIES, LoggerNameOffset), 116);
SAME(sizeof(CLASSIC_EVENT_ID), 24);
SAME(sizeof(ENABLE_TRACE_PARAMETERS), 48);
SAME(offsetof(ENABLE_TRACE_PARAMETERS, EnableFilterDesc), 32);
SAME(offsetof(ENABLE_TRACE_PARAMETERS, FilterDescCount), 40);
SAME(sizeof(EVENT_FILTER_DESCRIPTOR), 16);
SAME(WNODE_FLAG_TRACED_GUID, 0x20000);
SAME(EVENT_TRACE_FILE_MODE_SEQUENTIAL, 0x1);
SAME(EVENT_TRACE_BUFFERING_MODE, 0x400);
SAME(EVENT_CONTROL_CODE_CAPTURE_STATE, 2);
SAME(EVENT_ENABLE_PROPERTY_STACK_TRACE, 4);
#ifndef EVENT_TRACE_SYSTEM_LOGGER_MODE
#define EVENT_TRACE_SYSTEM_LOGGER_MODE 0x02000000
#endif
SAME(EVENT_TRACE_SYSTEM_LOGGER_MODE, 0x02000000);

#define SESSIONS 64
#define SYSTEM_SESSIONS 8
#define NAME_ROOM 1024
SAME(TraceStackTracingInfo, 3);
SAME(TraceSystemTraceEnableFlagsInfo, 4);
#define FILTER_EVENT_ID 0x80000200u
#define FILTER_STACKWALK 0x80001000u
#define FILTER_EXECUTABLE_NAME 0x80000008u

typedef struct {
    ULONGLONG handle;
    GUID guid;
    WCHAR name[NAME_ROOM], file[NAME_ROOM];
    ULONG mode, flags, masks[8], stacks, buffer_kib, min, max, lost, written;
    LONGLONG copied;
} Session;

typedef struct {
    ULONGLONG next;
    Session sessions[SESSIONS];
} State;

static State state;
static HANDLE mutex;

static void said(const char *format, ...) {
    const char *path = getenv("ETWHY_DOUBLE_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    va_list rest;
    va_start(rest, format);
    vfprintf(file, format, rest);
    va_end(rest);
    fputc('\n', file);
    fclose(file);
}

static void enter(void) {
    mutex = CreateMutexW(NULL, FALSE, L"etwhy-double");
    WaitForSingleObject(mutex, INFINITE);
    memset(&state, 0, sizeof state);
    const char *path = getenv("ETWHY_DOUBLE_STATE");
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (file) {
        if (fread(&state, sizeof state, 1, file) != 1) memset(&state, 0, sizeof state);
        fclose(file);
    }
    if (!state.next) state.next = 1;
}

static ULONG leave(ULONG code) {
    const char *path = getenv("ETWHY_DOUBLE_STATE");
    FILE *file = path ? fopen(path, "wb") : NULL;
    if (file) {
        fwrite(&state, sizeof state, 1, file);
        fclose(file);
    }
    ReleaseMutex(mutex);
    CloseHandle(mutex);
    return code;
}

// The error that ETWHY_DOUBLE_FAIL asks for.
static ULONG fails(const char *function) {
    const char *list = getenv("ETWHY_DOUBLE_FAIL");
    const char *at = list ? strstr(list, function) : NULL;
    return at && at[strlen(function)] == '=' ? strtoul(at + strlen(function) + 1, NULL, 10) : 0;
}

static Session *by_name(LPCWSTR name) {
    for (int n = 0; n < SESSIONS; n++)
        if (state.sessions[n].handle && !lstrcmpiW(state.sessions[n].name, name)) return &state.sessions[n];
    return NULL;
}

static Session *by_handle(ULONGLONG handle) {
    for (int n = 0; n < SESSIONS; n++)
        if (handle && state.sessions[n].handle == handle) return &state.sessions[n];
    return NULL;
}

static int is_kernel(const Session *s) {
    return (s->mode & EVENT_TRACE_SYSTEM_LOGGER_MODE) || IsEqualGUID(&s->guid, &SystemTraceControlGuid);
}

// Appends buffers of the given trace to a log file; all that are left if `all`.
static void grow(Session *s, int all) {
    const char *path = getenv(is_kernel(s) ? "ETWHY_DOUBLE_KERNEL" : "ETWHY_DOUBLE_USER");
    FILE *from = path ? fopen(path, "rb") : NULL;
    FILE *to = s->file[0] ? _wfopen(s->file, L"ab") : NULL;
    DWORD size = 0;
    if (from && to && fread(&size, 4, 1, from) == 1 && size >= 1024 && size <= (16 << 20)) {
        char *buffer = malloc(size);
        fseek(from, (long)s->copied, SEEK_SET);
        while (buffer && fread(buffer, size, 1, from) == 1) {
            fwrite(buffer, size, 1, to);
            s->copied += size;
            s->written++;
            if (!all) break;
        }
        free(buffer);
    }
    if (from) fclose(from);
    if (to) fclose(to);
}

// A text that begins inside the block behind the structure and ends inside it.
static int text_is_inside(const EVENT_TRACE_PROPERTIES *p, ULONG offset) {
    if (offset < sizeof *p || offset % 2 || offset >= p->Wnode.BufferSize) return 0;
    const WCHAR *text = (const WCHAR *)((const char *)p + offset);
    ULONG room = (p->Wnode.BufferSize - offset) / 2;
    for (ULONG n = 0; n < room; n++)
        if (!text[n]) return 1;
    return 0;
}

static WCHAR *text_at(EVENT_TRACE_PROPERTIES *p, ULONG offset) { return (WCHAR *)((char *)p + offset); }

static ULONG bad_block(const EVENT_TRACE_PROPERTIES *p) {
    if (!p) return ERROR_INVALID_PARAMETER;
    if (p->Wnode.BufferSize < sizeof *p + 2 * sizeof(WCHAR)) return ERROR_BAD_LENGTH;
    if (!(p->Wnode.Flags & WNODE_FLAG_TRACED_GUID)) return ERROR_INVALID_PARAMETER;
    if (!p->LoggerNameOffset || !text_is_inside(p, p->LoggerNameOffset)) return ERROR_INVALID_PARAMETER;
    if (p->LogFileNameOffset && !text_is_inside(p, p->LogFileNameOffset)) return ERROR_INVALID_PARAMETER;
    return 0;
}

static ULONG bad_start(LPCWSTR name, const EVENT_TRACE_PROPERTIES *p) {
    ULONG mode = p->LogFileMode;
    size_t room = (p->LogFileNameOffset > p->LoggerNameOffset ? p->LogFileNameOffset : p->Wnode.BufferSize) - p->LoggerNameOffset;
    if ((wcslen(name) + 1) * 2 > room) return ERROR_BAD_LENGTH;
    if (p->Wnode.ClientContext > 3) return ERROR_INVALID_PARAMETER;
    if (!p->BufferSize || p->BufferSize > 16384 || p->MaximumBuffers < p->MinimumBuffers) return ERROR_INVALID_PARAMETER;
    int files = !!(mode & EVENT_TRACE_FILE_MODE_SEQUENTIAL) + !!(mode & EVENT_TRACE_FILE_MODE_CIRCULAR) +
                !!(mode & EVENT_TRACE_FILE_MODE_APPEND) + !!(mode & EVENT_TRACE_FILE_MODE_NEWFILE);
    int memory = !!(mode & EVENT_TRACE_BUFFERING_MODE);
    if (files > 1 || (memory && (files || (mode & EVENT_TRACE_REAL_TIME_MODE)))) return ERROR_INVALID_PARAMETER;
    if (!memory && !(mode & EVENT_TRACE_REAL_TIME_MODE) && !p->LogFileNameOffset) return ERROR_BAD_PATHNAME;
    int is_nt = !lstrcmpiW(name, KERNEL_LOGGER_NAMEW);
    if (is_nt != !!IsEqualGUID(&p->Wnode.Guid, &SystemTraceControlGuid)) return ERROR_INVALID_PARAMETER;
    if (p->EnableFlags && !is_nt && !(mode & EVENT_TRACE_SYSTEM_LOGGER_MODE)) return ERROR_INVALID_PARAMETER;
    return 0;
}

// ERROR_PATH_NOT_FOUND if there is no such folder.
static ULONG make_file(LPCWSTR path) {
    if (wcslen(path) < 4 || path[1] != ':') return ERROR_BAD_PATHNAME;
    FILE *file = _wfopen(path, L"wb");
    if (!file) return ERROR_PATH_NOT_FOUND;
    fclose(file);
    return 0;
}

ULONG WINAPI StartTraceW(PTRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p) {
    ULONG code = fails("StartTraceW");
    if (!code && (!handle || !name || !*name)) code = ERROR_INVALID_PARAMETER;
    if (!code) code = bad_block(p);
    if (!code) code = bad_start(name, p);
    if (code) {
        said("StartTraceW refused %lu", code);
        return code;
    }
    enter();
    Session *free_one = NULL;
    int systems = 0;
    for (int n = 0; n < SESSIONS; n++) {
        Session *s = &state.sessions[n];
        if (!s->handle) {
            if (!free_one) free_one = s;
            continue;
        }
        if (!lstrcmpiW(s->name, name) || IsEqualGUID(&s->guid, &p->Wnode.Guid)) {
            said("StartTraceW %ls 183", name);
            return leave(ERROR_ALREADY_EXISTS);
        }
        systems += is_kernel(s);
    }
    int system = (p->LogFileMode & EVENT_TRACE_SYSTEM_LOGGER_MODE) || IsEqualGUID(&p->Wnode.Guid, &SystemTraceControlGuid);
    if (!free_one || (system && systems >= SYSTEM_SESSIONS)) return leave(ERROR_NO_SYSTEM_RESOURCES);
    if (p->LogFileNameOffset) {
        code = make_file(text_at(p, p->LogFileNameOffset));
        if (code) return leave(code);
    }
    memset(free_one, 0, sizeof *free_one);
    *handle = free_one->handle = state.next++;
    free_one->guid = p->Wnode.Guid;
    lstrcpynW(free_one->name, name, NAME_ROOM);
    if (p->LogFileNameOffset) lstrcpynW(free_one->file, text_at(p, p->LogFileNameOffset), NAME_ROOM);
    free_one->mode = p->LogFileMode;
    free_one->flags = p->EnableFlags;
    free_one->buffer_kib = p->BufferSize;
    free_one->min = p->MinimumBuffers;
    free_one->max = p->MaximumBuffers;
    lstrcpyW(text_at(p, p->LoggerNameOffset), name);
    said("StartTraceW %ls mode=%08lx flags=%08lx buffers=%lux%lu..%lu timer=%lu", name, p->LogFileMode, p->EnableFlags, p->BufferSize,
         p->MinimumBuffers, p->MaximumBuffers, p->FlushTimer);
    grow(free_one, 0);
    return leave(0);
}

static void fill(const Session *s, EVENT_TRACE_PROPERTIES *p) {
    p->Wnode.HistoricalContext = s->handle;
    p->Wnode.Guid = s->guid;
    p->LogFileMode = s->mode;
    p->EnableFlags = s->flags;
    p->BufferSize = s->buffer_kib;
    p->MinimumBuffers = s->min;
    p->MaximumBuffers = s->max;
    p->EventsLost = s->lost;
    p->BuffersWritten = s->written;
    lstrcpyW(text_at(p, p->LoggerNameOffset), s->name);
    if (p->LogFileNameOffset) lstrcpyW(text_at(p, p->LogFileNameOffset), s->file);
}

// Room for both names, as ControlTrace and QueryAllTraces want it.
static int has_room(const EVENT_TRACE_PROPERTIES *p, const Session *s) {
    ULONG name = p->LoggerNameOffset, file = p->LogFileNameOffset, end = p->Wnode.BufferSize;
    ULONG name_end = file > name ? file : end, file_end = name > file ? name : end;
    return name + (wcslen(s->name) + 1) * 2 <= name_end && (!file || file + (wcslen(s->file) + 1) * 2 <= file_end);
}

ULONG WINAPI ControlTraceW(TRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p, ULONG control) {
    static const char *const names[] = {"ControlTraceW/query", "ControlTraceW/stop", "ControlTraceW/update", "ControlTraceW/flush"};
    if (control > 3) return ERROR_INVALID_PARAMETER;
    ULONG code = fails(names[control]);
    if (!code) code = bad_block(p);
    if (!code && !handle && !name) code = ERROR_INVALID_PARAMETER;
    if (code) {
        said("%s refused %lu", names[control], code);
        return code;
    }
    enter();
    Session *s = name ? by_name(name) : by_handle(handle);
    if (!s) return leave(ERROR_WMI_INSTANCE_NOT_FOUND);
    WCHAR file[NAME_ROOM] = L"";
    if (control >= EVENT_TRACE_CONTROL_UPDATE && p->LogFileNameOffset) lstrcpynW(file, text_at(p, p->LogFileNameOffset), NAME_ROOM);
    ULONG flags = p->EnableFlags;
    if (!has_room(p, s)) return leave(ERROR_MORE_DATA);
    grow(s, control == EVENT_TRACE_CONTROL_STOP);
    switch (control) {
    case EVENT_TRACE_CONTROL_UPDATE:
        if (file[0]) {
            code = make_file(file);
            if (code) return leave(code);
            lstrcpynW(s->file, file, NAME_ROOM);
            s->copied = 0;
            grow(s, 0);
        }
        // "Set this member to 0 to disable all kernel providers."
        if (is_kernel(s)) s->flags = flags;
        break;
    case EVENT_TRACE_CONTROL_FLUSH:
        if (s->mode & EVENT_TRACE_BUFFERING_MODE) {
            if (!file[0]) return leave(ERROR_INVALID_PARAMETER);
            code = make_file(file);
            if (code) return leave(code);
            Session copy = *s;
            lstrcpynW(copy.file, file, NAME_ROOM);
            copy.copied = 0;
            grow(&copy, 1);
        }
        break;
    }
    fill(s, p);
    if (control != EVENT_TRACE_CONTROL_QUERY) said("%s %ls %ls", names[control], s->name, file);
    if (control == EVENT_TRACE_CONTROL_STOP) s->handle = 0;
    return leave(0);
}

static ULONG bad_filter(const EVENT_FILTER_DESCRIPTOR *filter) {
    if (filter->Type == FILTER_EXECUTABLE_NAME) {
        // A string of at most 1024 bytes, with its final zero.
        const WCHAR *names = (const WCHAR *)(ULONG_PTR)filter->Ptr;
        if (!names || filter->Size > 1024 || filter->Size != 2u * (lstrlenW(names) + 1) || !names[0]) return ERROR_INVALID_PARAMETER;
        said("filter %ls", names);
        return 0;
    }
    if (filter->Type != FILTER_EVENT_ID && filter->Type != FILTER_STACKWALK) return ERROR_INVALID_PARAMETER;
    const unsigned char *bytes = (const unsigned char *)(ULONG_PTR)filter->Ptr;
    if (!bytes || filter->Size < 4 || filter->Size > 1024) return ERROR_INVALID_PARAMETER;
    USHORT count = *(const USHORT *)(bytes + 2);
    // EVENT_FILTER_EVENT_ID: FilterIn, Reserved, Count, Events.
    if (bytes[0] > 1 || bytes[1] || !count || count > 64 || filter->Size != 4u + 2u * count) return ERROR_INVALID_PARAMETER;
    return 0;
}

ULONG WINAPI EnableTraceEx2(TRACEHANDLE handle, LPCGUID provider, ULONG control, UCHAR level, ULONGLONG any, ULONGLONG all, ULONG timeout,
                            PENABLE_TRACE_PARAMETERS parameters) {
    ULONG code = fails("EnableTraceEx2");
    if (!code && (!provider || control > EVENT_CONTROL_CODE_CAPTURE_STATE)) code = ERROR_INVALID_PARAMETER;
    if (!code && parameters) {
        if (parameters->Version < 1 || parameters->Version > 2 || parameters->ControlFlags) code = ERROR_INVALID_PARAMETER;
        if (!parameters->EnableFilterDesc != !parameters->FilterDescCount) code = ERROR_INVALID_PARAMETER;
        for (ULONG n = 0; !code && n < parameters->FilterDescCount; n++) code = bad_filter(&parameters->EnableFilterDesc[n]);
    }
    enter();
    Session *s = by_handle(handle);
    if (!code && !s) code = ERROR_INVALID_PARAMETER;
    said("EnableTraceEx2 %08lx control=%lu level=%u any=%llx stack=%d filters=%lu -> %lu", provider ? provider->Data1 : 0, control, level, any,
         parameters && (parameters->EnableProperty & EVENT_ENABLE_PROPERTY_STACK_TRACE), parameters ? parameters->FilterDescCount : 0, code);
    (void)all;
    (void)timeout;
    return leave(code);
}

ULONG WINAPI TraceSetInformation(TRACEHANDLE handle, TRACE_INFO_CLASS class, PVOID data, ULONG length) {
    ULONG code = fails("TraceSetInformation");
    enter();
    Session *s = by_handle(handle);
    if (!code && (!s || !data || !is_kernel(s))) code = ERROR_INVALID_PARAMETER;
    if (!code && class == TraceStackTracingInfo) {
        const CLASSIC_EVENT_ID *ids = data;
        if (!length || length % sizeof *ids || length > 256 * sizeof *ids) code = ERROR_BAD_LENGTH;
        for (ULONG n = 0; !code && n < length / sizeof *ids; n++)
            for (int r = 0; r < 7; r++)
                if (ids[n].Reserved[r]) code = ERROR_INVALID_PARAMETER;
        if (!code) s->stacks = length / sizeof *ids;
    } else if (!code && class == TraceSystemTraceEnableFlagsInfo) {
        if (length != sizeof s->masks) code = ERROR_BAD_LENGTH;
        else {
            memcpy(s->masks, data, length);
            s->flags = s->masks[0];
        }
    } else if (!code) {
        code = ERROR_NOT_SUPPORTED;
    }
    said("TraceSetInformation class=%d length=%lu -> %lu", class, length, code);
    return leave(code);
}

ULONG WINAPI QueryAllTracesW(PEVENT_TRACE_PROPERTIES *array, ULONG size, PULONG count) {
    ULONG code = fails("QueryAllTracesW");
    if (code) return code;
    if (!array || !size || !count) return ERROR_INVALID_PARAMETER;
    enter();
    *count = 0;
    for (int n = 0; n < SESSIONS; n++) {
        Session *s = &state.sessions[n];
        if (!s->handle) continue;
        if (*count < size) {
            code = bad_block(array[*count]);
            if (!code && !has_room(array[*count], s)) code = ERROR_MORE_DATA;
            if (code) return leave(code);
            fill(s, array[*count]);
        }
        ++*count;
    }
    return leave(*count > size ? ERROR_MORE_DATA : 0);
}

ULONG WINAPI EventRegister(LPCGUID provider, PENABLECALLBACK callback, PVOID context, PREGHANDLE handle) {
    (void)callback;
    (void)context;
    if (!provider || !handle) return ERROR_INVALID_PARAMETER;
    *handle = 77;
    return 0;
}

ULONG WINAPI EventUnregister(REGHANDLE handle) { return handle == 77 ? 0 : ERROR_INVALID_HANDLE; }

ULONG WINAPI EventWriteString(REGHANDLE handle, UCHAR level, ULONGLONG keyword, PCWSTR text) {
    if (handle != 77) return ERROR_INVALID_HANDLE;
    if (!text) return ERROR_INVALID_PARAMETER;
    said("EventWriteString level=%u keyword=%llx %ls", level, keyword, text);
    return 0;
}

// Not documented: phnt's ntetw.h has ETW_SET_MARK_INFORMATION { ULONG Flag; WCHAR Mark[1]; }.
ULONG NTAPI EtwSetMark(HANDLE handle, PVOID information, ULONG size) {
    const WCHAR *text = (const WCHAR *)((const char *)information + 4);
    if (handle || !information || size < 6 || size % 2 || text[(size - 4) / 2 - 1]) return ERROR_INVALID_PARAMETER;
    said("EtwSetMark %ls", text);
    return 0;
}

#ifdef TOOL
#define WMI L"SYSTEM\\CurrentControlSet\\Control\\WMI\\"

// A value of a type and size, or an error.
static ULONG value(HKEY key, LPCWSTR name, DWORD type, void *room, DWORD size) {
    DWORD is = 0, got = size;
    ULONG code = RegQueryValueExW(key, name, NULL, &is, room, &got);
    if (!code && is != type) code = ERROR_INVALID_DATATYPE;
    if (!code && type != REG_SZ && type != REG_BINARY && got != size) code = ERROR_INVALID_DATA;
    return code;
}

static int guid_of(LPCWSTR text, GUID *guid) {
    unsigned n[11];
    if (lstrlenW(text) != 38 || text[37] != '}') return 0;
    if (swscanf(text, L"{%8x-%4x-%4x-%2x%2x-%2x%2x%2x%2x%2x%2x}", n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10) != 11)
        return 0;
    guid->Data1 = n[0];
    guid->Data2 = n[1];
    guid->Data3 = n[2];
    for (int at = 0; at < 8; at++) guid->Data4[at] = n[3 + at];
    return 1;
}

// Providers are keys below an autologger's.
static ULONG boot_provider(HKEY session, LPCWSTR name) {
    GUID guid;
    HKEY key;
    DWORD enabled = 0, level = 0, property = 0;
    ULONGLONG any = 0;
    if (!guid_of(name, &guid)) return ERROR_INVALID_DATA;
    ULONG code = RegOpenKeyExW(session, name, 0, KEY_READ, &key);
    if (code) return code;
    code = value(key, L"Enabled", REG_DWORD, &enabled, 4);
    if (!code) code = value(key, L"EnableLevel", REG_DWORD, &level, 4);
    if (!code) code = value(key, L"MatchAnyKeyword", REG_QWORD, &any, 8);
    if (!code && value(key, L"EnableProperty", REG_DWORD, &property, 4) == ERROR_INVALID_DATATYPE) code = ERROR_INVALID_DATATYPE;
    RegCloseKey(key);
    said("boot provider %08lx enabled=%lu level=%lu any=%llx property=%lu -> %lu", guid.Data1, enabled, level, any, property, code);
    return code;
}

static ULONG boot_session(HKEY key, Session *s, LPCWSTR name, int is_global) {
    ULONG code = fails("boot"), clock = 0, most = 0;
    WCHAR text[NAME_ROOM] = L"";
    memset(s, 0, sizeof *s);
    lstrcpynW(s->name, is_global ? KERNEL_LOGGER_NAMEW : name, NAME_ROOM);
    if (!code) code = value(key, L"FileName", REG_SZ, s->file, sizeof s->file);
    if (!code) code = value(key, L"LogFileMode", REG_DWORD, &s->mode, 4);
    if (!code) code = value(key, L"BufferSize", REG_DWORD, &s->buffer_kib, 4);
    if (!code) code = value(key, L"MinimumBuffers", REG_DWORD, &s->min, 4);
    if (!code) code = value(key, L"MaximumBuffers", REG_DWORD, &s->max, 4);
    if (!code) code = value(key, L"ClockType", REG_DWORD, &clock, 4);
    if (!code) code = value(key, L"MaxFileSize", REG_DWORD, &most, 4);
    if (!code && is_global) {
        s->guid = SystemTraceControlGuid;
        code = value(key, L"EnableKernelFlags", REG_BINARY, s->masks, sizeof s->masks);
        s->flags = s->masks[0];
    } else if (!code) {
        code = value(key, L"Guid", REG_SZ, text, sizeof text);
        if (!code && !guid_of(text, &s->guid)) code = ERROR_INVALID_DATA;
    }
    if (!code && (s->mode != EVENT_TRACE_FILE_MODE_SEQUENTIAL || clock < 1 || clock > 3 || s->max < s->min || !most || s->buffer_kib >= 1024))
        code = ERROR_INVALID_PARAMETER;
    for (DWORD n = 0; !code && !RegEnumKeyW(key, n, text, NAME_ROOM); n++) code = boot_provider(key, text);
    if (!code) code = make_file(s->file);
    said("boot %ls mode=%08lx flags=%08lx buffers=%lux%lu..%lu most=%lu -> %lu", s->name, s->mode, s->flags, s->buffer_kib, s->min, s->max, most,
         code);
    return code;
}

static void boot_key(LPCWSTR path, LPCWSTR name, int is_global) {
    HKEY key;
    ULONG start = 0, code;
    Session *s = NULL;
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, KEY_ALL_ACCESS, &key)) return;
    for (int n = 0; !s && n < SESSIONS; n++)
        if (!state.sessions[n].handle) s = &state.sessions[n];
    if (s && !value(key, L"Start", REG_DWORD, &start, 4) && start == 1) {
        code = boot_session(key, s, name, is_global);
        if (!code) {
            s->handle = state.next++;
            grow(s, 0);
        }
        RegSetValueExW(key, L"Status", 0, REG_DWORD, (const BYTE *)&code, 4);
    }
    RegCloseKey(key);
}

static void boot(void) {
    HKEY all;
    WCHAR name[256], path[512];
    memset(state.sessions, 0, sizeof state.sessions);
    boot_key(WMI L"GlobalLogger", L"GlobalLogger", 1);
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, WMI L"Autologger", 0, KEY_READ, &all)) return;
    for (DWORD n = 0; !RegEnumKeyW(all, n, name, 256); n++) {
        lstrcpyW(path, WMI L"Autologger\\");
        lstrcatW(path, name);
        boot_key(path, name, 0);
    }
    RegCloseKey(all);
}

int wmain(int count, WCHAR **words) {
    if (count < 2) return 2;
    if (!lstrcmpW(words[1], L"sleep") && count > 2) {
        Sleep(wcstoul(words[2], NULL, 10));
        return 0;
    }
    enter();
    Session *s = count > 2 ? by_name(words[2]) : NULL;
    if (!lstrcmpW(words[1], L"take") && count > 2) {
        for (int n = 0; !s && n < SESSIONS; n++)
            if (!state.sessions[n].handle) s = &state.sessions[n];
        memset(s, 0, sizeof *s);
        s->handle = state.next++;
        lstrcpynW(s->name, words[2], NAME_ROOM);
        lstrcpyW(s->file, L"C:\\PaloNull");
        s->guid = SystemTraceControlGuid;
        s->mode = EVENT_TRACE_FILE_MODE_SEQUENTIAL;
        s->flags = EVENT_TRACE_FLAG_SYSTEMCALL;
    } else if (!lstrcmpW(words[1], L"boot")) {
        boot();
    } else if (!lstrcmpW(words[1], L"end") && s) {
        s->handle = 0;
    } else if (!lstrcmpW(words[1], L"lose") && s && count > 3) {
        s->lost = wcstoul(words[3], NULL, 10);
    } else if (!lstrcmpW(words[1], L"flags") && s && count > 3) {
        s->flags = wcstoul(words[3], NULL, 16);
    } else if (!lstrcmpW(words[1], L"list")) {
        for (int n = 0; n < SESSIONS; n++)
            if (state.sessions[n].handle) printf("%ls|%ls|%lx\n", state.sessions[n].name, state.sessions[n].file, state.sessions[n].mode);
    } else {
        leave(0);
        return 2;
    }
    leave(0);
    return 0;
}
#endif
