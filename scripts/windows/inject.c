/* inject.exe LIBRARY COMMAND…: starts a command with that library in it, as products do: before its first instruction, by a thread
 * from outside. Ends as the command does. */
#include <stdio.h>
#include <wchar.h>
#include <windows.h>

/* The rest of the command line, behind so many words. */
static wchar_t *behind(wchar_t *line, int words)
{
    while (words-- > 0) {
        int quoted = 0;
        for (; *line && (quoted || *line != L' '); line++)
            if (*line == L'"')
                quoted = !quoted;
        while (*line == L' ')
            line++;
    }
    return line;
}

int wmain(int count, wchar_t **words)
{
    STARTUPINFOW start = {.cb = sizeof start};
    PROCESS_INFORMATION made;
    SIZE_T size, done;
    DWORD code = 0;
    HANDLE thread;
    void *name;
    if (count < 3)
        return 90;
    start.dwFlags = STARTF_USESTDHANDLES;
    start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    if (!CreateProcessW(NULL, behind(GetCommandLineW(), 2), NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &start, &made))
        return 91;
    size = (wcslen(words[1]) + 1) * sizeof(wchar_t);
    name = VirtualAllocEx(made.hProcess, NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    WriteProcessMemory(made.hProcess, name, words[1], size, &done);
    /* kernel32 has the same address in all processes. */
    thread = CreateRemoteThread(made.hProcess, NULL, 0,
                                (LPTHREAD_START_ROUTINE)(void *)GetProcAddress(GetModuleHandleA("kernel32.dll"), "LoadLibraryW"),
                                name, 0, NULL);
    if (!thread || WaitForSingleObject(thread, 30000) || !GetExitCodeThread(thread, &code) || !code) {
        fprintf(stderr, "inject: the library was not loaded\n");
        TerminateProcess(made.hProcess, 92);
        return 92;
    }
    ResumeThread(made.hThread);
    WaitForSingleObject(made.hProcess, INFINITE);
    GetExitCodeProcess(made.hProcess, &code);
    return (int)code;
}
