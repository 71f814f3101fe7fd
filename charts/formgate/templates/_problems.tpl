{{/* Fails the rendering if values are invalid or contradict each other, and lists all problems: root */}}
{{- define "formgate.refuse" -}}
{{- $problems := list -}}
{{- $values := .Values -}}
{{- $bundled := .Values.bundled.enabled -}}
{{- if not .Values.access.url -}}
{{- $problems = append $problems "access.url: set the base URL of the identity provider" -}}
{{- end -}}
{{- if not (or .Values.directory.url .Values.platformServer.enabled) -}}
{{- $problems = append $problems "directory.url: set the base URL of the directory service, or set platformServer.enabled" -}}
{{- end -}}
{{- $needed := dict -}}
{{- range $part, $secrets := fromYaml (include "formgate.secretSources" .) -}}
{{- range $variable, $secret := $secrets -}}
{{- $given := and $secret.source.existingSecret.name $secret.source.value -}}
{{- if $given -}}
{{- $problems = append $problems (printf "%s: set either value or existingSecret.name, not both" $secret.path) -}}
{{- end -}}
{{- $isOptional := hasPrefix "REDIS_" $variable -}}
{{- if not (or $isOptional $secret.source.existingSecret.name $secret.source.value $secret.bundled $secret.generated) -}}
{{- $problems = append $problems (printf "%s: set value or existingSecret.name%s" $secret.path (eq $variable "DATABASE_URL" | ternary ", or set bundled.enabled" "")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $memory := eq (get .Values.tokenHandler.env "SESSION_STORE" | default "redis") "memory" -}}
{{- with .Values.redis -}}
{{- $topologies := 0 -}}
{{- if or .url.value .url.existingSecret.name -}}{{- $topologies = add1 $topologies -}}{{- end -}}
{{- if .sentinels -}}{{- $topologies = add1 $topologies -}}{{- end -}}
{{- if .clusterNodes -}}{{- $topologies = add1 $topologies -}}{{- end -}}
{{- if gt (int $topologies) 1 -}}
{{- $problems = append $problems "redis: set only one of url, sentinels and clusterNodes" -}}
{{- else if and (gt (int $topologies) 0) $bundled -}}
{{- $problems = append $problems "redis: bundled.enabled already provides Redis; remove url, sentinels and clusterNodes" -}}
{{- else if not (or (gt (int $topologies) 0) $bundled $memory) -}}
{{- $problems = append $problems "redis: set one of url, sentinels and clusterNodes, or set bundled.enabled" -}}
{{- end -}}
{{- end -}}
{{- if and $memory (or .Values.tokenHandler.autoscaling.enabled (gt (int .Values.tokenHandler.replicas) 1)) -}}
{{- $problems = append $problems "tokenHandler.env.SESSION_STORE: pods cannot share sessions in memory; disable tokenHandler.autoscaling and set tokenHandler.replicas to 1" -}}
{{- end -}}
{{- if and .Values.platformServer.enabled (not .Values.platformServer.mailFrom) -}}
{{- $problems = append $problems "platformServer.mailFrom: set the sender of notices and codes, such as Forms <forms@example.org>" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- $problems = append $problems "httpRoute.parentRefs: name at least one Gateway" -}}
{{- end -}}
{{- range $route := list "ingress" "httpRoute" -}}
{{- $setting := get $values $route -}}
{{- if and $setting.enabled $setting.platformServer (not $values.platformServer.enabled) -}}
{{- $problems = append $problems (printf "%s.platformServer: this release runs no platform server; set platformServer.enabled" $route) -}}
{{- end -}}
{{- end -}}
{{- if and (dig "pages" "console" "enabled" false .Values.forms) (not (include "formgate.consoleUrl" .)) -}}
{{- $problems = append $problems "tokenHandler.consoleUrl: set the public URL of the site that serves the console, or a host of the Ingress or HTTPRoute" -}}
{{- end -}}
{{- range $part := list "forms" "tokenHandler" "platformServer" -}}
{{- with (get $values $part).autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- $problems = append $problems (printf "%s.autoscaling: minReplicas is greater than maxReplicas" $part) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "invalid values:\n  - %s" (join "\n  - " (uniq $problems))) -}}
{{- end -}}
{{- end -}}
