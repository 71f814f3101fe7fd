{{/* Refuses values that cannot work, all problems at once, before anything is installed: root */}}
{{- define "formgate.refuse" -}}
{{- $problems := list -}}
{{- $values := .Values -}}
{{- $bundled := .Values.bundled.enabled -}}
{{- if not .Values.access.url -}}
{{- $problems = append $problems "access.url: where is the access service?" -}}
{{- end -}}
{{- if not (or .Values.directory.url .Values.platformServer.enabled) -}}
{{- $problems = append $problems "directory.url: where is the directory service? Or set platformServer.enabled" -}}
{{- end -}}
{{- $needed := dict -}}
{{- range $part, $secrets := fromYaml (include "formgate.secretSources" .) -}}
{{- range $variable, $secret := $secrets -}}
{{- $given := and $secret.source.existingSecret.name $secret.source.value -}}
{{- if $given -}}
{{- $problems = append $problems (printf "%s of %s: give a value or an existingSecret, not both" $variable $part) -}}
{{- end -}}
{{- $isOptional := hasPrefix "REDIS_" $variable -}}
{{- if not (or $isOptional $secret.source.existingSecret.name $secret.source.value $secret.bundled $secret.generated) -}}
{{- $problems = append $problems (printf "%s of %s: give a value or an existingSecret%s" $variable $part (eq $variable "DATABASE_URL" | ternary ", or set bundled.enabled" "")) -}}
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
{{- $problems = append $problems "redis: give one of url, sentinels and clusterNodes" -}}
{{- else if and (gt (int $topologies) 0) $bundled -}}
{{- $problems = append $problems "redis: bundled.enabled brings its own; give no other" -}}
{{- else if not (or (gt (int $topologies) 0) $bundled $memory) -}}
{{- $problems = append $problems "redis: where is Redis? Or set bundled.enabled" -}}
{{- end -}}
{{- end -}}
{{- if and $memory (or .Values.tokenHandler.autoscaling.enabled (gt (int .Values.tokenHandler.replicas) 1)) -}}
{{- $problems = append $problems "tokenHandler.env.SESSION_STORE: sessions in memory are those of one pod; set tokenHandler.replicas to 1" -}}
{{- end -}}
{{- if and .Values.platformServer.enabled (not .Values.platformServer.mailFrom) -}}
{{- $problems = append $problems "platformServer.mailFrom: whom do notices come from?" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- $problems = append $problems "httpRoute.parentRefs: which Gateway?" -}}
{{- end -}}
{{- range $route := list "ingress" "httpRoute" -}}
{{- $setting := get $values $route -}}
{{- if and $setting.enabled $setting.platformServer (not $values.platformServer.enabled) -}}
{{- $problems = append $problems (printf "%s.platformServer: there is none; set platformServer.enabled" $route) -}}
{{- end -}}
{{- end -}}
{{- range $part := list "forms" "tokenHandler" "platformServer" -}}
{{- with (get $values $part).autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- $problems = append $problems (printf "%s.autoscaling: minReplicas is more than maxReplicas" $part) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "these values cannot work:\n  - %s" (join "\n  - " $problems)) -}}
{{- end -}}
{{- end -}}
