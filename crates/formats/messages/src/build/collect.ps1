# Packs what renders this machine's event messages elsewhere: message files with their translations,
# and which provider uses which file. Run it in Windows PowerShell 5 or PowerShell 7; an administrator sees more
# (the sources of the Security log). It changes nothing but the archive that it writes.
#
#   powershell -ExecutionPolicy Bypass -File collect.ps1 [-Out messages.zip] [-Languages en-US,de-DE]
#
# Then, anywhere:  etwhy evtx messages build messages.zip -o messages.db
param(
    [string] $Out = "$env:COMPUTERNAME-messages.zip",
    [string[]] $Languages = @()
)
$ErrorActionPreference = 'Stop'
# With -File, a list comes as one text.
$Languages = @($Languages -split ',' | Where-Object { $_ })
$work = Join-Path ([IO.Path]::GetTempPath()) ('etwhy-messages-' + [Guid]::NewGuid())
$null = New-Item -ItemType Directory -Path $work
$rows = New-Object System.Collections.Generic.List[object]
$files = New-Object 'System.Collections.Generic.HashSet[string]' ([StringComparer]::OrdinalIgnoreCase)

function Add-Files([string] $value) {
    foreach ($path in ($value -split ';')) {
        $path = [Environment]::ExpandEnvironmentVariables($path.Trim().Trim('"'))
        if (-not $path) { continue }
        # A name without a folder is looked for where the system looks.
        $places = @($path)
        if (-not [IO.Path]::IsPathRooted($path)) {
            $places = @("$env:SystemRoot\System32\$path", "$env:SystemRoot\System32\drivers\$path", "$env:SystemRoot\$path")
        }
        foreach ($place in $places) {
            if ([IO.File]::Exists($place)) { $null = $files.Add([IO.Path]::GetFullPath($place)); break }
        }
    }
}

function Add-Key($key, [string] $kind, [string] $name, [string] $log, [string] $guid, [hashtable] $columns) {
    $row = [ordered]@{ kind = $kind; name = $name; log = $log; guid = $guid; resource = ''; message = ''; parameter = ''; category = '' }
    foreach ($column in $columns.Keys) {
        # Unexpanded, so that the list says the same as the registry.
        $value = [string] $key.GetValue($columns[$column], '', 'DoNotExpandEnvironmentNames')
        $row[$column] = $value
        Add-Files $value
    }
    $rows.Add([pscustomobject] $row)
}

try {
    $publishers = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\WINEVT\Publishers'
    foreach ($key in Get-ChildItem $publishers -ErrorAction SilentlyContinue) {
        Add-Key $key 'manifest' ([string] $key.GetValue('')) '' $key.PSChildName @{
            resource = 'ResourceFileName'; message = 'MessageFileName'; parameter = 'ParameterFileName'
        }
    }
    $eventlog = 'HKLM:\SYSTEM\CurrentControlSet\Services\EventLog'
    foreach ($log in Get-ChildItem $eventlog -ErrorAction SilentlyContinue) {
        foreach ($key in Get-ChildItem $log.PSPath -ErrorAction SilentlyContinue) {
            Add-Key $key 'classic' $key.PSChildName $log.PSChildName ([string] $key.GetValue('providerGuid')) @{
                message = 'EventMessageFile'; parameter = 'ParameterMessageFile'; category = 'CategoryMessageFile'
            }
        }
    }
    # Texts of errors, which providers name as %%5.
    foreach ($name in 'kernel32.dll', 'KernelBase.dll', 'ntdll.dll', 'msobjs.dll') { Add-Files $name }

    $rows | Export-Csv -NoTypeInformation -Encoding UTF8 -Path (Join-Path $work 'providers.csv')
    $n = 0
    foreach ($file in $files) {
        # One folder for each file: names occur twice.
        $target = Join-Path $work "files\$n"
        $n += 1
        try {
            $null = New-Item -ItemType Directory -Path $target
            Copy-Item -LiteralPath $file -Destination $target
            $folder = [IO.Path]::GetDirectoryName($file)
            foreach ($language in Get-ChildItem -LiteralPath $folder -Directory -ErrorAction SilentlyContinue) {
                $mui = Join-Path $language.FullName ([IO.Path]::GetFileName($file) + '.mui')
                if ([IO.File]::Exists($mui) -and ($Languages.Count -eq 0 -or $Languages -contains $language.Name)) {
                    $null = New-Item -ItemType Directory -Path (Join-Path $target $language.Name)
                    Copy-Item -LiteralPath $mui -Destination (Join-Path $target $language.Name)
                }
            }
        } catch {
            Write-Warning "$file is left out: $_"
        }
    }
    if (Test-Path -LiteralPath $Out) { Remove-Item -LiteralPath $Out }
    Add-Type -AssemblyName System.IO.Compression.FileSystem
    $full = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Out)
    [IO.Compression.ZipFile]::CreateFromDirectory($work, $full)
    Write-Output "$full : $($rows.Count) providers, $($files.Count) files"
} finally {
    Remove-Item -LiteralPath $work -Recurse -Force
}
