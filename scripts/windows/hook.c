/* A library as products inject it: answers in the place of CreateFileW, sleeps 2 ms and asks the real one. How it gets there is
 * told by ETWHY_HOOK: absolute (mov rax; jmp rax), relay (jmp rel32 to a jump of its own), import (the program's table), hidden
 * (code in memory of no library), anything else: not at all. */
#include <windows.h>
#include <string.h>

typedef HANDLE(WINAPI *opens)(LPCWSTR, DWORD, DWORD, LPSECURITY_ATTRIBUTES, DWORD, DWORD, HANDLE);

static CRITICAL_SECTION one;
static BYTE *entry;
static BYTE before[16], after[16];
static opens real;

static void put(void *to, const void *bytes, SIZE_T length)
{
    DWORD old;
    VirtualProtect(to, length, PAGE_EXECUTE_READWRITE, &old);
    memcpy(to, bytes, length);
    VirtualProtect(to, length, old, &old);
    FlushInstructionCache(GetCurrentProcess(), to, length);
}

/* The jump is taken away while the real function runs. */
static HANDLE WINAPI slowly(LPCWSTR name, DWORD access, DWORD share, LPSECURITY_ATTRIBUTES security, DWORD how, DWORD flags,
                            HANDLE template)
{
    HANDLE file;
    DWORD error;
    EnterCriticalSection(&one);
    Sleep(2);
    if (entry)
        put(entry, before, sizeof before);
    file = real(name, access, share, security, how, flags, template);
    error = GetLastError();
    if (entry)
        put(entry, after, sizeof after);
    LeaveCriticalSection(&one);
    SetLastError(error);
    return file;
}

static void absolute(BYTE *code, void *to)
{
    memcpy(code, "\x48\xb8", 2);
    memcpy(code + 2, &to, 8);
    memcpy(code + 10, "\xff\xe0", 2);
}

/* Memory within 2 GB of an address. */
static BYTE *near_to(BYTE *place)
{
    SIZE_T step;
    for (step = 0x10000; step < 0x70000000; step += 0x10000) {
        BYTE *at = (BYTE *)(((ULONG_PTR)place & ~(ULONG_PTR)0xffff) - step);
        BYTE *got = VirtualAlloc(at, 4096, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
        if (got)
            return got;
    }
    return NULL;
}

static void import(void)
{
    BYTE *base = (BYTE *)GetModuleHandleW(NULL);
    IMAGE_NT_HEADERS *head = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
    IMAGE_IMPORT_DESCRIPTOR *library =
        (IMAGE_IMPORT_DESCRIPTOR *)(base + head->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress);
    void *to = (void *)slowly;
    for (; library->Name; library++) {
        ULONG_PTR *slot = (ULONG_PTR *)(base + library->FirstThunk);
        IMAGE_THUNK_DATA *name = (IMAGE_THUNK_DATA *)(base + library->OriginalFirstThunk);
        for (; name->u1.AddressOfData; name++, slot++) {
            if (IMAGE_SNAP_BY_ORDINAL(name->u1.Ordinal) ||
                strcmp((char *)((IMAGE_IMPORT_BY_NAME *)(base + name->u1.AddressOfData))->Name, "CreateFileW"))
                continue;
            real = (opens)*slot;
            put(slot, &to, sizeof to);
        }
    }
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
    char how[16] = "";
    BYTE *relay;
    LONG distance;
    (void)self;
    (void)reserved;
    if (reason != DLL_PROCESS_ATTACH)
        return TRUE;
    GetEnvironmentVariableA("ETWHY_HOOK", how, sizeof how);
    InitializeCriticalSection(&one);
    if (!strcmp(how, "import")) {
        import();
        return TRUE;
    }
    if (strcmp(how, "absolute") && strcmp(how, "relay") && strcmp(how, "hidden"))
        return TRUE;
    real = (opens)(void *)GetProcAddress(GetModuleHandleA("kernelbase.dll"), "CreateFileW");
    entry = (BYTE *)(void *)real;
    memcpy(before, entry, sizeof before);
    memcpy(after, entry, sizeof after);
    if (!strcmp(how, "absolute")) {
        absolute(after, (void *)slowly);
    } else {
        relay = near_to(entry);
        if (!relay)
            return FALSE;
        if (!strcmp(how, "relay")) {
            absolute(relay, (void *)slowly);
        } else {
            /* sub rsp, 40; call [real code below]: a piece that is no mere jump, so that nobody can look through it. */
            memcpy(relay, "\x48\x83\xec\x48", 4);                 /* sub rsp, 0x48 */
            memcpy(relay + 4, "\x48\x8b\x44\x24\x70", 5);         /* mov rax, [rsp+0x70]: fifth argument */
            memcpy(relay + 9, "\x48\x89\x44\x24\x20", 5);         /* mov [rsp+0x20], rax */
            memcpy(relay + 14, "\x48\x8b\x44\x24\x78", 5);        /* sixth */
            memcpy(relay + 19, "\x48\x89\x44\x24\x28", 5);
            memcpy(relay + 24, "\x48\x8b\x84\x24\x80\0\0\0", 8);  /* seventh */
            memcpy(relay + 32, "\x48\x89\x44\x24\x30", 5);
            absolute(relay + 37, (void *)slowly);
            relay[47] = 0xff, relay[48] = 0xd0;                   /* call rax */
            memcpy(relay + 49, "\x48\x83\xc4\x48\xc3", 5);        /* add rsp, 0x48; ret */
        }
        after[0] = 0xe9;
        distance = (LONG)(relay - (entry + 5));
        memcpy(after + 1, &distance, 4);
    }
    put(entry, after, sizeof after);
    return TRUE;
}
