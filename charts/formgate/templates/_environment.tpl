{{/*
Environment variables of each process. Variables without secrets are merged in a dict, so that no name occurs twice. The
schema of values refuses names in `env` that the chart sets itself. Variables with secrets only refer to Secret objects.
test/chart compares all variables with the config schemas of the processes.
The comment above a template names the template's argument after a colon: `root` is the root context of the chart, and
`dict a, b` is a dict with the keys a and b.
*/}}

{{/* Variables of every process that listens: root */}}
{{- define "formgate.environment.process" -}}
PORT: "8080"
METRICS_PORT: "9090"
LOG_LEVEL: {{ .Values.logLevel | quote }}
URN_PREFIX: {{ .Values.urnPrefix | quote }}
TRUSTED_PROXIES: {{ .Values.trustedProxies | quote }}
CORS_ORIGINS: {{ .Values.corsOrigins | quote }}
DRAIN_DEADLINE: {{ printf "PT%dS" (int .Values.drain.deadlineSeconds) | quote }}
{{ include "formgate.environment.access" . }}
{{- include "formgate.environment.tracing" . }}
{{- end -}}

{{/* Variables of traces, of every process: root */}}
{{- define "formgate.environment.tracing" -}}
{{- with .Values.tracing }}
{{- if .endpoint }}
OTEL_EXPORTER_OTLP_ENDPOINT: {{ .endpoint | quote }}
OTEL_TRACES_SAMPLER: {{ .sampler | quote }}
{{- with .samplerArg }}
OTEL_TRACES_SAMPLER_ARG: {{ . | quote }}
{{- end }}
{{- with .resourceAttributes }}
{{- $pairs := list }}
{{- range $name, $value := . }}
{{- $pairs = append $pairs (printf "%s=%s" $name ($value | urlquery | replace "+" "%20")) }}
{{- end }}
OTEL_RESOURCE_ATTRIBUTES: {{ join "," $pairs | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "formgate.environment.access" -}}
ACCESS_SERVICE_URL: {{ .Values.access.url | quote }}
{{- with .Values.access.publicUrl }}
ACCESS_SERVICE_PUBLIC_URL: {{ . | quote }}
{{- end }}
{{- with .Values.access.tenantIssuers }}
{{- $pairs := list }}
{{- range $realm, $issuer := . }}
{{- $pairs = append $pairs (printf "%s=%s" $realm $issuer) }}
{{- end }}
TENANT_ISSUERS: {{ join "," $pairs | quote }}
{{- end }}
{{- end -}}

{{/* Variables of every process that calls the platform: dict root, account */}}
{{- define "formgate.environment.platform" -}}
{{- if .root.Values.platformServer.enabled }}
DIRECTORY_URL: {{ printf "%s/directory/v2" (include "formgate.serviceUrl" (dict "root" .root "component" "platform-server")) | quote }}
{{- else }}
DIRECTORY_URL: {{ .root.Values.directory.url | quote }}
{{- end }}
{{- with .account.clientId }}
CLIENT_ID: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "formgate.environment.forms" -}}
{{ include "formgate.environment.process" . }}
{{ include "formgate.environment.platform" (dict "root" . "account" .Values.forms.account) }}
{{- with .Values.forms.publicUrl }}
PUBLIC_URL: {{ . | quote }}
{{- end }}
{{- if .Values.forms.apply.enabled }}
APPLY_CLIENT_ID: {{ .Values.forms.apply.clientId | quote }}
{{- end }}
{{- with include "formgate.pages" . | fromJsonArray }}
PAGES: {{ join "," . | quote }}
{{- end }}
{{- end -}}
{{- /* The names of the enabled pages as a JSON array */ -}}
{{- define "formgate.pages" -}}
{{- $names := list -}}
{{- range $name := list "apply" "console" -}}{{- if (index $.Values.forms.pages $name).enabled -}}{{- $names = append $names $name -}}{{- end -}}{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{- define "formgate.environment.tokenHandler" -}}
{{ include "formgate.environment.process" . }}
{{ include "formgate.environment.platform" (dict "root" . "account" .Values.tokenHandler.account) }}
TENANT_HEADER: {{ .Values.tenantHeader | quote }}
SESSION_COOKIE: {{ include "formgate.sessionCookie" . | quote }}
{{- with .Values.tokenHandler.signInPages }}
SIGN_IN_PAGES: {{ toJson . | quote }}
{{- end }}
{{- with .Values.tokenHandler.publicUrl }}
PUBLIC_URL: {{ . | quote }}
{{- end }}
{{ include "formgate.environment.clients" . }}
{{- with .Values.tokenHandler.upstreamAllowedDomains }}
UPSTREAM_ALLOWED_DOMAINS: {{ join "," . | quote }}
{{- end }}
{{- if not .Values.bundled.enabled }}
{{- with .Values.redis }}
{{- with .sentinels }}
REDIS_SENTINELS: {{ join "," . | quote }}
REDIS_SENTINEL_NAME: {{ $.Values.redis.sentinelName | quote }}
{{- with $.Values.redis.sentinelUsername }}
REDIS_SENTINEL_USERNAME: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .clusterNodes }}
REDIS_CLUSTER_NODES: {{ join "," . | quote }}
{{- end }}
{{- with .username }}
REDIS_USERNAME: {{ . | quote }}
{{- end }}
{{- if .tls.enabled }}
REDIS_TLS: "true"
{{- end }}
{{- with .tls.ca }}
REDIS_TLS_CA: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "formgate.sessionCookie" -}}
{{- if .Values.tokenHandler.sessionCookie -}}
{{- .Values.tokenHandler.sessionCookie -}}
{{- else -}}
{{- if include "formgate.usesTls" . -}}__Host-{{- end -}}formgate_session
{{- end -}}
{{- end -}}

{{- define "formgate.environment.platformServer" -}}
{{ include "formgate.environment.process" . }}
MAIL_FROM: {{ .Values.platformServer.mailFrom | quote }}
SEED_FILE: /etc/formgate/seed/seed.json
{{- end -}}

{{/*
Resolves the source of a secret to the name of a Secret and a key, in JSON; {} if the values give no source. Arguments:
dict root, source, name (of the variable), given (key in the Secret …-given), generated (optional: key in the Secret
…-keys), bundled (optional: name and key of a bundled store's Secret)
*/}}
{{- define "formgate.secretReference" -}}
{{- $fullname := include "formgate.fullname" .root -}}
{{- if .source.existingSecret.name -}}
{{- toJson (dict "name" .source.existingSecret.name "key" (.source.existingSecret.key | default .name)) -}}
{{- else if .source.value -}}
{{- toJson (dict "name" (printf "%s-given" $fullname) "key" .given) -}}
{{- else if .bundled -}}
{{- toJson .bundled -}}
{{- else if .generated -}}
{{- toJson (dict "name" (printf "%s-keys" $fullname) "key" .generated) -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* The secrets of all processes, by process and variable: root. secrets.yaml creates the Secrets from this list. */}}
{{- define "formgate.secretSources" -}}
{{- $postgres := printf "%s-postgres" (include "formgate.fullname" .) -}}
{{- $redis := printf "%s-redis" (include "formgate.fullname" .) -}}
{{- $bundled := .Values.bundled.enabled -}}
forms:
  DATABASE_URL: {{ toJson (dict "path" "forms.database" "source" .Values.forms.database "bundled" ($bundled | ternary (dict "name" $postgres "key" "FORMS_DATABASE_URL") nil)) }}
  CLIENT_SECRET: {{ toJson (dict "path" "forms.account.secret" "source" .Values.forms.account.secret) }}
  CODE_KEY: {{ toJson (dict "path" "forms.codeKey" "source" .Values.forms.codeKey "generated" "FORMS_CODE_KEY") }}
{{- if .Values.tracing.endpoint }}
  OTEL_EXPORTER_OTLP_HEADERS: {{ toJson (dict "path" "tracing.headers" "source" .Values.tracing.headers "given" "TRACING_HEADERS") }}
{{- end }}
{{- if .Values.forms.apply.enabled }}
  APPLY_CLIENT_SECRET: {{ toJson (dict "path" "forms.apply.secret" "source" .Values.forms.apply.secret) }}
  APPLY_KEY_RING: {{ toJson (dict "path" "forms.apply.keyRing" "source" .Values.forms.apply.keyRing "generated" "FORMS_APPLY_KEY_RING") }}
{{- end }}
tokenHandler:
  DATABASE_URL: {{ toJson (dict "path" "tokenHandler.database" "source" .Values.tokenHandler.database "bundled" ($bundled | ternary (dict "name" $postgres "key" "TOKEN_HANDLER_DATABASE_URL") nil)) }}
  CLIENT_SECRET: {{ toJson (dict "path" "tokenHandler.account.secret" "source" .Values.tokenHandler.account.secret) }}
  KEY_RING: {{ toJson (dict "path" "tokenHandler.keyRing" "source" .Values.tokenHandler.keyRing "generated" "TOKEN_HANDLER_KEY_RING") }}
  REDIS_URL: {{ toJson (dict "path" "redis.url" "source" .Values.redis.url "bundled" ($bundled | ternary (dict "name" $redis "key" "REDIS_URL") nil)) }}
  REDIS_PASSWORD: {{ toJson (dict "path" "redis.password" "source" .Values.redis.password) }}
  REDIS_SENTINEL_PASSWORD: {{ toJson (dict "path" "redis.sentinelPassword" "source" .Values.redis.sentinelPassword) }}
{{- if .Values.tracing.endpoint }}
  OTEL_EXPORTER_OTLP_HEADERS: {{ toJson (dict "path" "tracing.headers" "source" .Values.tracing.headers "given" "TRACING_HEADERS") }}
{{- end }}
{{- if .Values.reconciler.enabled }}
reconciler:
  DATABASE_URL: {{ toJson (dict "path" "forms.database" "source" .Values.forms.database "given" "FORMS_DATABASE_URL" "bundled" ($bundled | ternary (dict "name" $postgres "key" "FORMS_DATABASE_URL") nil)) }}
{{- $own := .Values.reconciler.account }}
{{- if or $own.clientId $own.secret.value $own.secret.existingSecret.name }}
  CLIENT_SECRET: {{ toJson (dict "path" "reconciler.account.secret" "source" $own.secret) }}
{{- else }}
  CLIENT_SECRET: {{ toJson (dict "path" "forms.account.secret" "source" .Values.forms.account.secret "given" "FORMS_CLIENT_SECRET") }}
{{- end }}
{{- if .Values.tracing.endpoint }}
  OTEL_EXPORTER_OTLP_HEADERS: {{ toJson (dict "path" "tracing.headers" "source" .Values.tracing.headers "given" "TRACING_HEADERS") }}
{{- end }}
{{- end }}
{{- if .Values.platformServer.enabled }}
platformServer:
  DATABASE_URL: {{ toJson (dict "path" "platformServer.database" "source" .Values.platformServer.database "bundled" ($bundled | ternary (dict "name" $postgres "key" "PLATFORM_SERVER_DATABASE_URL") nil)) }}
  SMTP_URL: {{ toJson (dict "path" "platformServer.smtp" "source" .Values.platformServer.smtp) }}
  CODE_KEY: {{ toJson (dict "path" "platformServer.codeKey" "source" .Values.platformServer.codeKey "generated" "PLATFORM_SERVER_CODE_KEY") }}
{{- if .Values.tracing.endpoint }}
  OTEL_EXPORTER_OTLP_HEADERS: {{ toJson (dict "path" "tracing.headers" "source" .Values.tracing.headers "given" "TRACING_HEADERS") }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Key of a variable in the chart's Secrets: dict part, variable */}}
{{- define "formgate.secretKey" -}}
{{- printf "%s_%s" (.part | snakecase | upper) .variable -}}
{{- end -}}

{{/*
References to the Secrets of a process, by variable, in JSON: dict root, part, copies (optional: name of a Secret with
copies of the secrets that the chart creates)
*/}}
{{- define "formgate.secretReferences" -}}
{{- $references := dict -}}
{{- range $name, $secret := get (fromYaml (include "formgate.secretSources" .root)) .part -}}
{{- $given := include "formgate.secretKey" (dict "part" $.part "variable" $name) -}}
{{- $reference := fromJson (include "formgate.secretReference" (merge (dict "root" $.root "name" $name) $secret (dict "given" $given))) -}}
{{- if and $reference $.copies (not $secret.source.existingSecret.name) -}}
{{- $reference = dict "name" $.copies "key" $given -}}
{{- end -}}
{{- if $reference -}}{{- $_ := set $references $name $reference -}}{{- end -}}
{{- end -}}
{{- toJson $references -}}
{{- end -}}

{{/*
A container's list `env`: dict root, part, plain (variables without secrets, YAML), env (the operator's), copies
(optional, as in formgate.secretReferences)
*/}}
{{- define "formgate.env" -}}
{{- $root := .root -}}
{{- $plain := mergeOverwrite (fromYaml .plain) (deepCopy .env) -}}
{{- if include "formgate.certificates" $root | fromJson -}}
{{- $plain = set $plain "NODE_EXTRA_CA_CERTS" "/etc/formgate/ca/ca.crt" -}}
{{- end -}}
{{- range $name, $value := $plain }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name, $reference := fromJson (include "formgate.secretReferences" .) }}
{{- if $root.Values.secrets.asFiles }}
- name: {{ $name }}_FILE
  value: /etc/formgate/secrets/{{ $name }}
{{- else }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $reference.name | quote }}
      key: {{ $reference.key | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The mount of formgate.secretVolume; empty unless secrets.asFiles is set: dict root, part */}}
{{- define "formgate.secretMount" -}}
{{- if .root.Values.secrets.asFiles -}}
- name: secrets-{{ .part | kebabcase }}
  mountPath: /etc/formgate/secrets
  readOnly: true
{{- end -}}
{{- end -}}

{{/* The volume with the secrets of a process as files; empty unless secrets.asFiles is set: dict root, part, copies */}}
{{- define "formgate.secretVolume" -}}
{{- if .root.Values.secrets.asFiles -}}
- name: secrets-{{ .part | kebabcase }}
  projected:
    sources:
      {{- range $name, $reference := fromJson (include "formgate.secretReferences" .) }}
      - secret:
          name: {{ $reference.name | quote }}
          items:
            - key: {{ $reference.key | quote }}
              path: {{ $name }}
      {{- end }}
{{- end -}}
{{- end -}}

{{/* The reconciler uses the form service's account if the values give it no separate account: root */}}
{{- define "formgate.environment.reconciler" -}}
LOG_LEVEL: {{ .Values.logLevel | quote }}
URN_PREFIX: {{ .Values.urnPrefix | quote }}
ACCESS_SERVICE_URL: {{ .Values.access.url | quote }}
{{- $own := .Values.reconciler.account }}
{{- $account := .Values.forms.account }}
{{- if or $own.clientId $own.secret.value $own.secret.existingSecret.name }}
{{- $account = $own }}
{{- end }}
{{ include "formgate.environment.platform" (dict "root" . "account" $account) }}
{{ include "formgate.environment.clients" . }}
{{- include "formgate.environment.tracing" . }}
{{- /*
The reconciler looks up the upstreams of targets as the token handler does, and the services that it calls as the form
service does, so it needs the overrides of both.
*/}}
{{- range $name, $value := merge (deepCopy .Values.tokenHandler.env) .Values.forms.env }}
{{- if hasPrefix "DIR_" $name }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Settings of clients, which must be equal in the token handler and the reconciler: root */}}
{{- define "formgate.environment.clients" -}}
ALLOW_INSECURE_REDIRECT_URIS: {{ .Values.tokenHandler.allowInsecureRedirectUris | quote }}
ALLOW_WILDCARD_REDIRECT_PATHS: {{ .Values.tokenHandler.allowWildcardRedirectPaths | quote }}
{{- with .Values.tokenHandler.builderAppUrl }}
BUILDER_APP_URL: {{ . | quote }}
{{- end }}
{{- with include "formgate.consoleUrl" . }}
CONSOLE_URL: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Public URL of the site with the console: root. By default the URL of the first host; empty without the console */}}
{{- define "formgate.consoleUrl" -}}
{{- $hosts := .Values.ingress.enabled | ternary .Values.ingress.hosts .Values.httpRoute.hostnames -}}
{{- if .Values.tokenHandler.consoleUrl -}}
{{- .Values.tokenHandler.consoleUrl -}}
{{- else if and (dig "pages" "console" "enabled" false .Values.forms) $hosts -}}
{{- printf "%s://%s" (include "formgate.usesTls" . | empty | ternary "http" "https") (first $hosts) -}}
{{- end -}}
{{- end -}}
