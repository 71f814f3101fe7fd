{{/*
Building blocks of the hook that checks the configuration (config-check.yaml). The comment above a template names the
template's argument after a colon: `root` is the root context of the chart, and `dict a, b` is a dict with the keys a
and b.
*/}}

{{/* Annotations of the hook's objects: weight */}}
{{- define "formgate.checkHook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
{{- /* A failed Job stays until the next check, so that its log can be read. */}}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* The processes to check, by their keys in the values: root */}}
{{- define "formgate.checkedParts" -}}
forms: forms
tokenHandler: token-handler
{{- if .Values.platformServer.enabled }}
platformServer: platform-server
{{- end }}
{{- if .Values.reconciler.enabled }}
reconciler: reconciler
{{- end }}
{{- end -}}

{{/* Arguments of a check, in JSON: dict root, part, component. Skips dependencies that this release creates later. */}}
{{- define "formgate.checkArguments" -}}
{{- $root := .root -}}
{{- $namespace := $root.Release.Namespace -}}
{{- /* Even a failed installation leaves a release, so only ready form service pods prove that its tables exist. */ -}}
{{- $forms := lookup "apps/v1" "Deployment" $namespace (include "formgate.partName" (dict "root" $root "component" "forms")) | default dict -}}
{{- $hasTables := gt (int (dig "status" "readyReplicas" 0 $forms)) 0 -}}
{{- $exists := dict "postgres" (lookup "v1" "Service" $namespace (include "formgate.partName" (dict "root" $root "component" "postgres"))) "directory" (lookup "v1" "Service" $namespace (include "formgate.partName" (dict "root" $root "component" "platform-server"))) -}}
{{- $skipped := list -}}
{{- if and $root.Values.bundled.enabled (not $exists.postgres) -}}
{{- $skipped = concat $skipped (list "postgres" "redis") -}}
{{- else if and (eq .part "reconciler") (not $hasTables) -}}
{{- /* The form service has not yet created the tables that the reconciler requires. */ -}}
{{- $skipped = append $skipped "postgres" -}}
{{- end -}}
{{- if and $root.Values.platformServer.enabled (not $exists.directory) -}}
{{- $skipped = append $skipped "directory" -}}
{{- end -}}
{{- $args := list "config" "--check" "--process" .component "--time-limit" (printf "PT%dS" (int $root.Values.checks.timeLimitSeconds)) -}}
{{- range $skipped -}}
{{- $args = concat $args (list "--skip" .) -}}
{{- end -}}
{{- toJson $args -}}
{{- end -}}

{{/*
Copies of the secrets that this chart creates, by process and variable: root. If a generated secret or the URL of a
bundled store does not exist yet, the copy contains a sample in the same format.
*/}}
{{- define "formgate.secretCopies" -}}
{{- $namespace := .Release.Namespace -}}
{{- $fullname := include "formgate.fullname" . -}}
{{- $keys := (lookup "v1" "Secret" $namespace (printf "%s-keys" $fullname) | default dict).data | default dict -}}
{{- $copies := dict -}}
{{- range $part, $secrets := fromYaml (include "formgate.secretSources" .) -}}
{{- range $variable, $secret := $secrets -}}
{{- $key := include "formgate.secretKey" (dict "part" $part "variable" $variable) -}}
{{- if $secret.source.existingSecret.name -}}
{{- else if $secret.source.value -}}
{{- $_ := set $copies $key ($secret.source.value | b64enc) -}}
{{- else if $secret.bundled -}}
{{- $data := (lookup "v1" "Secret" $namespace $secret.bundled.name | default dict).data | default dict -}}
{{- $sample := printf "%s://sample" (eq $variable "REDIS_URL" | ternary "redis" "postgres") -}}
{{- $_ := set $copies $key (get $data $secret.bundled.key | default ($sample | b64enc)) -}}
{{- else if $secret.generated -}}
{{- $sample := hasSuffix "KEY_RING" $variable | ternary (printf "not-generated-yet:%s" (repeat 32 "x" | b64enc)) (repeat 48 "x") -}}
{{- $_ := set $copies $key (get $keys $secret.generated | default ($sample | b64enc)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $copies -}}
{{- end -}}

{{/* The configured volumes of the check and of all processes, each name once, in JSON: dict root, parts */}}
{{- define "formgate.checkVolumes" -}}
{{- include "formgate.checkUnion" (dict "root" .root "parts" (concat (list "checks") (keys .parts | sortAlpha)) "setting" "extraVolumes" "what" "volumes") -}}
{{- end -}}

{{/*
The sidecars of the check, in JSON: dict root, parts. By default those of all processes, because a process may reach its
database only through a sidecar.
*/}}
{{- define "formgate.checkSidecars" -}}
{{- if hasKey .root.Values.checks.pods "sidecars" -}}
{{- toJson .root.Values.checks.pods.sidecars -}}
{{- else -}}
{{- include "formgate.checkUnion" (dict "root" .root "parts" (keys .parts | sortAlpha) "setting" "sidecars" "what" "sidecars") -}}
{{- end -}}
{{- end -}}

{{/* The items of a setting of processes, each name once, in JSON: dict root, parts, setting, what (in messages) */}}
{{- define "formgate.checkUnion" -}}
{{- $seen := dict -}}
{{- $items := list -}}
{{- range $part := .parts -}}
{{- range get (fromJson (include "formgate.podSettings" (dict "root" $.root "values" (get $.root.Values $part)))) $.setting -}}
{{- if not (hasKey $seen .name) -}}
{{- $_ := set $seen .name . -}}
{{- $items = append $items . -}}
{{- else if ne (toJson (get $seen .name)) (toJson .) -}}
{{- fail (printf "invalid values:\n  - checks.enabled: the processes have different %s %s; give them different names" $.what .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $items -}}
{{- end -}}

{{/*
NetworkPolicies that allow the Job the destinations of all processes, even before the policies of the release exist: dict
root, name
*/}}
{{- define "formgate.checkPolicies" -}}
{{- $root := .root -}}
{{- $egress := $root.Values.networkPolicy.egress -}}
{{- $bundled := $root.Values.bundled.enabled -}}
{{- $context := dict "root" $root "component" "config-check" -}}
{{- $dns := $root.Values.networkPolicy.dns -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "formgate.metadata" (merge (dict "ownAnnotations" (include "formgate.checkHook" "-10" | fromYaml)) $context) | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "formgate.selectorLabels" $context | nindent 6 }}
  policyTypes: [Ingress, Egress]
  egress:
    - ports:
        {{- range $dns.ports }}
        - protocol: UDP
          port: {{ int . }}
        - protocol: TCP
          port: {{ int . }}
        {{- end }}
      {{- with $dns.to }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- include "formgate.egress" (dict "root" $root "rule" $egress.postgres "pods" ($bundled | ternary "postgres" "") "port" "postgres") | nindent 4 }}
    {{- include "formgate.egress" (dict "root" $root "rule" $egress.redis "pods" ($bundled | ternary "redis" "") "port" "redis") | nindent 4 }}
    {{- include "formgate.egress" (dict "root" $root "rule" $egress.access) | nindent 4 }}
    {{- include "formgate.platformEgress" $root | nindent 4 }}
    {{- if $root.Values.platformServer.enabled }}
    {{- include "formgate.egress" (dict "root" $root "rule" $egress.smtp) | nindent 4 }}
    {{- end }}
{{- $ports := dict -}}
{{- if $bundled -}}{{- $ports = merge $ports (dict "postgres" "postgres" "redis" "redis") -}}{{- end -}}
{{- if $root.Values.platformServer.enabled -}}{{- $_ := set $ports "platform-server" "http" -}}{{- end -}}
{{- range $component, $port := $ports }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "formgate.metadata" (merge (dict "name" (printf "%s-%s" $.name $component) "ownAnnotations" (include "formgate.checkHook" "-10" | fromYaml)) $context) | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "formgate.selectorLabels" (dict "root" $root "component" $component) | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - ports:
        - protocol: TCP
          port: {{ $port }}
      from:
        - podSelector:
            matchLabels:
              {{- include "formgate.selectorLabels" $context | nindent 14 }}
{{- end }}
{{- end -}}
